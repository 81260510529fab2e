use std::fs;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use hickory_resolver::config::{LookupIpStrategy, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::parse_resolv_conf;
use hickory_resolver::{Hosts, TokioResolver};
use parking_lot::{Mutex, RwLock};

/// How often the files are checked for changes, while hosts are looked up.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// How long one of the two tries of a lookup takes at most.
const TRY_TIMEOUT: Duration = Duration::from_millis(1_250);
/// What the C library does without name servers.
const LOCAL_SERVER: &str = "\nnameserver 127.0.0.1\n";
const NO_RESOLVER: &str = "the DNS resolver cannot be created";

/// The system's name servers and hosts. Changes of their files apply within seconds.
pub(crate) struct SystemConfig {
    /// `None` if the configuration is fixed.
    files: Option<Files>,
    current: RwLock<Arc<Names>>,
    next_check: Mutex<Instant>,
}

/// `resolv.conf` and the hosts file.
pub(crate) type Files = [PathBuf; 2];

/// One version of the configuration.
pub(crate) struct Names {
    pub(crate) dns: TokioResolver,
    hosts: Hosts,
    versions: [Version; 2],
}

/// A file's modification time and size, if it exists.
type Version = Option<(SystemTime, u64)>;

impl SystemConfig {
    pub(crate) fn from_files(files: Files) -> anyhow::Result<Self> {
        let names = Names::read(&files, true)?;
        Ok(Self::new(Some(files), names))
    }

    /// A configuration that does not change, without hosts.
    pub(crate) fn fixed(config: ResolverConfig) -> anyhow::Result<Self> {
        let names = Names {
            dns: build(config, ResolverOpts::default())?,
            hosts: Hosts::default(),
            versions: [None; 2],
        };
        Ok(Self::new(None, names))
    }

    fn new(files: Option<Files>, names: Names) -> Self {
        Self {
            files,
            current: RwLock::new(Arc::new(names)),
            next_check: Mutex::new(Instant::now() + CHECK_INTERVAL),
        }
    }

    /// The current configuration. Now and then this checks the files first.
    pub(crate) async fn current(self: &Arc<Self>) -> Arc<Names> {
        if self.files.is_some() && self.is_check_due() {
            let config = Arc::clone(self);
            let _ = tokio::task::spawn_blocking(move || config.reload()).await;
        }
        self.names()
    }

    fn names(&self) -> Arc<Names> {
        Arc::clone(&self.current.read())
    }

    fn is_check_due(&self) -> bool {
        let mut next_check = self.next_check.lock();
        let now = Instant::now();
        let due = now >= *next_check;
        if due {
            *next_check = now + CHECK_INTERVAL;
        }
        due
    }

    /// Reads changed files. While one cannot be read, such as while it is replaced, the configuration stays as it is.
    fn reload(&self) {
        let Some(files) = &self.files else { return };
        if files.each_ref().map(version) == self.names().versions {
            return;
        }
        match Names::read(files, false) {
            Ok(names) => {
                *self.current.write() = Arc::new(names);
                tracing::info!("the configuration of name resolution changed");
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(
                    error,
                    "the changed configuration of name resolution cannot be used; keeping the last one"
                );
            }
        }
    }
}

fn version(path: &PathBuf) -> Version {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

impl Names {
    fn read(files: &Files, or_local_server: bool) -> anyhow::Result<Self> {
        // The versions come first, so that a change during the reading is noticed later.
        let versions = files.each_ref().map(version);
        let unreadable = |path: &Path| format!("{} cannot be read", path.display());
        let [path, hosts] = files;
        let mut resolv_conf = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && or_local_server => String::new(),
            read => read.with_context(|| unreadable(path))?,
        };
        let names_a_server = |line: &str| line.split_whitespace().next() == Some("nameserver");
        if or_local_server && !resolv_conf.lines().any(names_a_server) {
            tracing::warn!("there is no name server in resolv.conf; asking 127.0.0.1");
            resolv_conf.push_str(LOCAL_SERVER);
        }
        let (config, options) = parse_resolv_conf(resolv_conf).context(NO_RESOLVER)?;
        Ok(Self {
            dns: build(config, options)?,
            hosts: read_hosts(hosts).with_context(|| unreadable(hosts))?,
            versions,
        })
    }

    /// The addresses that the hosts file gives a name.
    pub(crate) fn addresses(&self, name: &Name) -> Vec<IpAddr> {
        let families = [RecordType::A, RecordType::AAAA].into_iter();
        let found = families.filter_map(|family| {
            let query = Query::query(name.clone(), family);
            self.hosts.lookup_static_host(&query)
        });
        let records = found.flat_map(|lookup| lookup.answers().to_vec());
        records.filter_map(|record| record.data.ip_addr()).collect()
    }
}

fn read_hosts(path: &Path) -> io::Result<Hosts> {
    let mut hosts = Hosts::default();
    match fs::File::open(path) {
        Ok(file) => hosts.read_hosts_conf(file)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(hosts)
}

fn build(config: ResolverConfig, mut options: ResolverOpts) -> anyhow::Result<TokioResolver> {
    options.timeout = TRY_TIMEOUT;
    options.attempts = 1;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    // The hosts file comes before search domains and needs no permit, so it is read here.
    options.use_hosts_file = ResolveHosts::Never;
    // Callers choose the hosts, so a cache would hold as much as their name servers send.
    options.cache_size = 0;
    let provider = TokioRuntimeProvider::default();
    let builder = TokioResolver::builder_with_config(config, provider);
    builder.with_options(options).build().context(NO_RESOLVER)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::IpAddr;

    use hickory_resolver::proto::rr::Name;

    use super::SystemConfig;

    fn engine(config: &SystemConfig) -> Vec<IpAddr> {
        config
            .names()
            .addresses(&Name::from_ascii("engine").unwrap())
    }

    #[tokio::test]
    async fn a_file_that_becomes_unusable_changes_nothing_until_it_is_usable_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name| directory.path().join(name);
        let (resolv_conf, hosts) = (path("resolv.conf"), path("hosts"));
        fs::write(&resolv_conf, "nameserver 192.0.2.1\n").unwrap();
        fs::write(&hosts, "10.0.0.1 engine\n").unwrap();
        let files = [resolv_conf.clone(), hosts.clone()];
        let config = SystemConfig::from_files(files).unwrap();
        let first = engine(&config);
        assert_eq!(first, ["10.0.0.1".parse::<IpAddr>().unwrap()]);

        fs::write(&hosts, "10.0.0.22 engine\n").unwrap();
        fs::remove_file(&resolv_conf).unwrap();
        config.reload();
        assert_eq!(engine(&config), first);
        fs::write(&resolv_conf, "# being written\n").unwrap();
        config.reload();
        assert_eq!(engine(&config), first);

        fs::write(&resolv_conf, "nameserver 192.0.2.2\n").unwrap();
        config.reload();
        let second = engine(&config);
        assert_eq!(second, ["10.0.0.22".parse::<IpAddr>().unwrap()]);
    }
}
