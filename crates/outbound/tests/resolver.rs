//! The resolver against a DNS server that answers for some names and is silent for others.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

use futures_util::future::join_all;
use outbound::{Resolve as _, SystemResolver, Unresolved};
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
async fn a_host_without_a_response_does_not_resolve_and_is_left_alone_for_a_while() {
    let (server, resolver) = start();
    assert_eq!(resolver.resolve("dead.example").await, Err(Unresolved));
    let queries = server.queries().len();
    assert!(queries > 0);
    assert_eq!(resolver.resolve("DEAD.example").await, Err(Unresolved));
    assert_eq!(server.queries().len(), queries);
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
    let dead = (0..200).map(|n| resolver.resolve(&format!("hooks.dead-{n}.example")));
    let dead = tokio::spawn(join_all(dead));
    eventually("all to be asked for", async || {
        (dead_names(&server).len() == 200).then_some(())
    })
    .await;
    assert_eq!(resolver.resolve(HEALTHY).await, Ok(vec![LOCALHOST]));
    assert!(dead.await.unwrap().iter().all(Result::is_err));
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
async fn a_host_for_which_there_is_no_capacity_does_not_resolve() {
    let (server, resolver) = start();
    let dead = (0..3_000).map(|n| resolver.resolve(&format!("dead-{n}.example")));
    let dead = tokio::spawn(join_all(dead));
    eventually("the capacity to be used", async || {
        (dead_names(&server).len() >= 16).then_some(())
    })
    .await;
    assert!(dead.await.unwrap().iter().all(Result::is_err));
    // Nothing is left of it.
    assert_eq!(resolver.resolve(HEALTHY).await, Ok(vec![LOCALHOST]));
}
