//! The resolver against a DNS server that answers for some names and is silent for others.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

use futures_util::future::join_all;
use futures_util::{FutureExt as _, poll};
use outbound::{Resolve as _, SystemResolver, Unresolved, for_owner};
use testkit::{TestNameServer, eventually};

const HEALTHY: &str = "hooks.up.example.net";
const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn start() -> (TestNameServer, SystemResolver) {
    let server = TestNameServer::start();
    let resolver = SystemResolver::with_name_server(server.address()).unwrap();
    (server, resolver)
}

/// The names without a response that were asked for.
fn dead_names(server: &TestNameServer) -> HashSet<String> {
    let names = server.queries().into_iter();
    names.filter(|name| name.contains("dead")).collect()
}

#[tokio::test]
async fn a_host_resolves_in_any_case_and_with_underscores() {
    let (_server, resolver) = start();
    for host in [HEALTHY, "HOOKS.up.example.net", "my_hooks.up.example.net."] {
        assert_eq!(resolver.resolve(host).await, Ok(vec![LOCALHOST]), "{host}");
    }
}

#[tokio::test]
async fn a_host_without_a_response_is_not_asked_for_again_for_a_while() {
    let (server, resolver) = start();
    let found = resolver.resolve("dead.example").await;
    assert_eq!(found, Err(Unresolved::NoAddress));
    let queries = server.queries().len();
    assert!(queries > 0);
    let found = resolver.resolve("DEAD.example").await;
    assert_eq!(found, Err(Unresolved::NotAsked));
    assert_eq!(server.queries().len(), queries);
    eventually("the host to be asked for again", async || {
        let found = resolver.resolve("dead.example").await;
        (found == Err(Unresolved::NoAddress)).then_some(())
    })
    .await;
    assert!(server.queries().len() > queries);
}

#[tokio::test]
async fn concurrent_lookups_of_a_host_are_one() {
    let (server, resolver) = start();
    let lookups = join_all((0..100).map(|_| resolver.resolve(HEALTHY))).await;
    assert!(
        lookups
            .into_iter()
            .all(|found| found == Ok(vec![LOCALHOST]))
    );
    // One for each address family, and perhaps a retransmission.
    assert!(server.queries().len() <= 4, "{:?}", server.queries());
}

#[tokio::test]
async fn hundreds_of_silent_name_servers_leave_capacity_for_other_domains() {
    let (server, resolver) = start();
    let dead = (0..100).map(|n| resolver.resolve(&format!("hooks.dead-{n}.example")));
    let dead = tokio::spawn(join_all(dead));
    eventually("all to be asked for", async || {
        (dead_names(&server).len() == 100).then_some(())
    })
    .await;
    assert_eq!(resolver.resolve(HEALTHY).await, Ok(vec![LOCALHOST]));
    assert!(dead.await.unwrap().iter().all(Result::is_err));
}

#[tokio::test]
async fn more_silent_name_servers_than_lookups_leave_capacity_for_known_hosts() {
    let (server, resolver) = start();
    assert_eq!(resolver.resolve(HEALTHY).await, Ok(vec![LOCALHOST]));
    let dead = (0..600).map(|n| resolver.resolve(&format!("hooks.dead-{n}.example")));
    let dead = tokio::spawn(join_all(dead));
    eventually("all capacity to be used", async || {
        (dead_names(&server).len() >= 128).then_some(())
    })
    .await;
    assert_eq!(resolver.resolve(HEALTHY).await, Ok(vec![LOCALHOST]));
    let dead = dead.await.unwrap();
    assert!(dead.contains(&Err(Unresolved::NoAddress)));
    assert!(dead.contains(&Err(Unresolved::NotAsked)));
}

#[tokio::test]
async fn an_owner_of_thousands_of_silent_name_servers_keeps_no_other_waiting() {
    let (server, resolver) = start();
    let ask = |owner: &'static str, number: usize| {
        let dead = (0..number).map(move |n| format!("hooks.dead-{owner}-{n}.example"));
        let hosts = dead.chain([HEALTHY.to_owned()]);
        let lookups = hosts.map(|host| for_owner(owner, resolver.resolve(&host)));
        tokio::spawn(join_all(lookups.collect::<Vec<_>>()))
    };
    let first = ask("eve", 2_000);
    eventually("the owner's share to be used", async || {
        (dead_names(&server).len() >= 128).then_some(())
    })
    .await;
    // Also if that owner waits for the same host.
    let lookup = for_owner("ada", resolver.resolve(HEALTHY));
    assert_eq!(lookup.await, Ok(vec![LOCALHOST]));
    let others = ["mallory", "trudy", "oscar"].map(|owner| ask(owner, 2_000));
    eventually("their shares to be used", async || {
        (dead_names(&server).len() >= 300).then_some(())
    })
    .await;
    let lookup = for_owner("bob", resolver.resolve("other.up.example.net"));
    assert_eq!(lookup.await, Ok(vec![LOCALHOST]));
    // Later lookups of the first one wait for its earlier ones only, and those for its share.
    let found = first.await.unwrap();
    assert!(found.contains(&Err(Unresolved::NotAsked)));
    for other in others {
        let _ = other.await.unwrap();
    }
}

#[tokio::test]
async fn a_domain_takes_no_more_than_its_share() {
    let (server, resolver) = start();
    let dead = (0..400).map(|n| resolver.resolve(&format!("host-{n}.dead.example")));
    let dead = tokio::spawn(join_all(dead));
    eventually("the share to be used", async || {
        (dead_names(&server).len() >= 16).then_some(())
    })
    .await;
    assert_eq!(resolver.resolve(HEALTHY).await, Ok(vec![LOCALHOST]));
    // The others wait, and give up before the first ones end.
    assert!(dead_names(&server).len() < 100);
    assert!(dead.await.unwrap().iter().all(Result::is_err));
}

#[tokio::test]
async fn a_known_host_does_not_wait_for_dead_ones_of_its_domain() {
    let (server, resolver) = start();
    assert_eq!(resolver.resolve(HEALTHY).await, Ok(vec![LOCALHOST]));
    let dead = (0..200).map(|n| {
        let (owner, host) = (format!("owner-{}", n / 16), format!("dead-{n}.example.net"));
        let lookup = resolver.resolve(&host);
        async move { for_owner(&owner, lookup).await }
    });
    let dead = tokio::spawn(join_all(dead.collect::<Vec<_>>()));
    eventually("the domain's share to be used", async || {
        (dead_names(&server).len() >= 64).then_some(())
    })
    .await;
    assert_eq!(resolver.resolve(HEALTHY).await, Ok(vec![LOCALHOST]));
    assert!(dead.await.unwrap().iter().all(Result::is_err));
}

#[tokio::test]
async fn a_host_is_not_asked_for_while_too_many_wait() {
    let (server, resolver) = start();
    let known = resolver.resolve("known.up.example.net").await;
    assert_eq!(known, Ok(vec![LOCALHOST]));
    let dead = (0..2_048).map(|n| resolver.resolve(&format!("dead-{n}.example")));
    let mut dead: Vec<_> = dead.collect();
    for lookup in &mut dead {
        assert!(poll!(lookup).is_pending());
    }
    let found = resolver.resolve(HEALTHY).now_or_never();
    assert_eq!(found, Some(Err(Unresolved::NotAsked)));
    assert!(!server.queries().iter().any(|name| name.contains(HEALTHY)));
    let known = resolver.resolve("known.up.example.net").await;
    assert_eq!(known, Ok(vec![LOCALHOST]));
    assert!(join_all(dead).await.iter().all(Result::is_err));
    // The capacity is free again.
    assert_eq!(resolver.resolve(HEALTHY).await, Ok(vec![LOCALHOST]));
}

#[tokio::test]
async fn the_hosts_file_comes_first_and_applies_when_it_changes() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name| directory.path().join(name);
    let (resolv_conf, hosts) = (path("resolv.conf"), path("hosts"));
    // No name server listens there.
    std::fs::write(&resolv_conf, "nameserver 127.0.0.254\nsearch example.net\n").unwrap();
    std::fs::write(&hosts, "10.0.0.1 engine # the first\n::1 engine\n").unwrap();
    let resolver = SystemResolver::from_files(&resolv_conf, &hosts).unwrap();
    let addresses = |texts: [&str; 2]| Ok(texts.map(|text| text.parse().unwrap()).to_vec());
    let found = resolver.resolve("Engine.").await;
    assert_eq!(found, addresses(["10.0.0.1", "::1"]));

    std::fs::write(&hosts, "10.0.0.2 engine\n10.0.0.3 engine\n").unwrap();
    eventually("the change to apply", async || {
        let found = resolver.resolve("engine").await;
        (found == addresses(["10.0.0.2", "10.0.0.3"])).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_missing_resolv_conf_means_the_local_host_and_an_unreadable_one_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("resolv.conf");
    assert!(SystemResolver::from_files(&missing, &missing).is_ok());
    std::fs::write(&missing, "search example.net\n").unwrap();
    assert!(SystemResolver::from_files(&missing, &missing).is_ok());
    // A directory cannot be read as a file.
    let error = SystemResolver::from_files(directory.path(), &missing).unwrap_err();
    assert!(error.to_string().ends_with("cannot be read"), "{error}");
    std::fs::write(&missing, "nameserver 300.0.0.1\n").unwrap();
    assert!(SystemResolver::from_files(&missing, &missing).is_err());
}
