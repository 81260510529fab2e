# Installs the packages that are its arguments.
#
# `policy-rc.d` keeps the servers of the packages from starting during the installation, the file in `createcluster.d` keeps
# Debian from creating a cluster, and `systemctl disable` keeps the servers from starting at the next boot. Existing files are
# not changed.
set -eu
policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/no-main-cluster.conf
cleanup() { rm -f ${made_policy:-} ${made_cluster:-}; }
trap cleanup EXIT
trap 'exit 130' INT TERM
if [ ! -e "$policy" ]; then
    made_policy=$policy
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
if [ ! -e "$cluster" ]; then
    made_cluster=$cluster
    mkdir -p "$(dirname "$cluster")"
    printf 'create_main_cluster = false\n' >"$cluster"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install --yes --no-install-recommends -o Dpkg::Use-Pty=0 "$@"
if [ -d /run/systemd/system ]; then
    for package in "$@"; do
        case $package in
        postgresql | rabbitmq-server | haproxy) systemctl disable --now "$package" >/dev/null 2>&1 || true ;;
        nginx-light) systemctl disable --now nginx >/dev/null 2>&1 || true ;;
        esac
    done
fi
