//! The configuration files of nginx and HAProxy.

use std::net::SocketAddr;
use std::path::Path;

/// As many as the gateway has on two cores.
const THREADS: usize = 2;

/// Where the origin and the proxies to it listen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    /// nginx with a constant response.
    pub(crate) origin: SocketAddr,
    pub(crate) nginx: SocketAddr,
    pub(crate) haproxy: SocketAddr,
    /// HAProxy that verifies tokens.
    pub(crate) verifying: SocketAddr,
}

/// The origin and a proxy to it. Only root may name a user, and without one nginx would drop to another.
pub(super) fn nginx(folder: &Path, addresses: Addresses) -> String {
    let user = if nix::unistd::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let folder = folder.display();
    let Addresses { origin, nginx, .. } = addresses;
    format!(
        r#"{user}
daemon off;
worker_processes {THREADS};
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 10000000;
    upstream origin {{ server {origin}; keepalive 64; keepalive_requests 10000000; }}
    server {{
        listen {origin};
        location / {{ default_type application/json; return 200 '{{"status":"pending"}}'; }}
    }}
    server {{
        listen {nginx};
        location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header connection ""; }}
    }}
}}
"#
    )
}

/// A frontend that only proxies, and one that refuses requests without a valid ES256 token. HAProxy 2.6 verifies no
/// Ed25519.
pub(super) fn haproxy(folder: &Path, addresses: Addresses, issuer: &str) -> String {
    let folder = folder.display();
    let Addresses {
        origin,
        haproxy,
        verifying,
        ..
    } = addresses;
    format!(
        r#"global
    nbthread {THREADS}
    maxconn 2048
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend proxy
    bind {haproxy}
    default_backend origin
frontend verifying
    bind {verifying}
    http-request set-var(txn.bearer) http_auth_bearer
    http-request set-var(txn.alg) var(txn.bearer),jwt_header_query('$.alg')
    http-request set-var(txn.iss) var(txn.bearer),jwt_payload_query('$.iss')
    http-request set-var(txn.exp) var(txn.bearer),jwt_payload_query('$.exp','int')
    http-request set-var(txn.now) date()
    http-request deny deny_status 401 unless {{ var(txn.alg) -m str ES256 }}
    http-request deny deny_status 401 unless {{ var(txn.iss) -m str {issuer} }}
    http-request deny deny_status 401 if {{ var(txn.exp),sub(txn.now) -m int lt 0 }}
    http-request deny deny_status 401 unless {{ var(txn.bearer),jwt_verify(txn.alg,"{folder}/token.pem") -m int 1 }}
    default_backend origin
backend origin
    server origin {origin}
"#
    )
}
