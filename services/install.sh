#!/bin/sh
# Installs the named packages with apt-get, as root on Debian or Ubuntu, and leaves no service of theirs running.
#
# Usage: sh services/install.sh valkey-server|redis-server|any|postgresql ...
#   valkey-server  from the machine's own suites, else from <codename>-backports of the machine's own Debian source
#   redis-server   from the machine's own suites
#   any            valkey-server, else redis-server
#   postgresql     from the machine's own suites; its programs only: no database cluster is made, those that exist are left alone
# What is there already is not touched. Exit code 1 when something asked for could not be had.
set -eu
export DEBIAN_FRONTEND=noninteractive

say() { echo "install: $*" >&2; }
apt() { apt-get -q -y -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"; }

# What is there for the time of this script only.
policy=/usr/sbin/policy-rc.d
no_cluster=/etc/postgresql-common/createcluster.d/coordinator-no-main-cluster.conf
policy_is_ours=
clean_up() {
  rm -f "$no_cluster"
  [ -z "$policy_is_ours" ] || rm -f "$policy"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# A package that apt installs would start its service on its usual port: this answers "do not" while the script runs.
if [ ! -e "$policy" ]; then
  policy_is_ours=yes
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod 755 "$policy"
fi

updated=
update() {
  [ -n "$updated" ] && return
  updated=yes
  # One unreachable source of many is no reason to stop: the install that follows decides.
  apt update || say 'apt-get update reported errors, going on'
}

has_candidate() {
  apt-cache policy "$1" | awk '$1 == "Candidate:" && $2 != "(none)" { found = 1 } END { exit !found }'
}

# Adds <codename>-backports beside the machine's own Debian source, at the same address.
add_backports() {
  codename=$(. /etc/os-release; if [ "$ID" = debian ]; then echo "${VERSION_CODENAME:-}"; fi)
  [ -n "$codename" ] || return 1
  address=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' 'Component: main' |
    awk -v codename="$codename" '$1 == codename { print $2; exit }')
  [ -n "$address" ] || return 1
  source=/etc/apt/sources.list.d/$codename-backports-for-valkey.sources
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  say "adding the suite $codename-backports in $source"
  {
    printf 'Types: deb\nURIs: %s\nSuites: %s-backports\nComponents: main\n' "$address" "$codename"
    if [ -e "$keyring" ]; then printf 'Signed-By: %s\n' "$keyring"; fi
  } > "$source"
  updated=
  update
}

install_package() {
  if command -v "$1" > /dev/null; then
    say "$1 is there: $(command -v "$1")"
    return
  fi
  update
  if [ "$1" = valkey-server ] && ! has_candidate "$1"; then
    add_backports || return 1
  fi
  has_candidate "$1" || return 1
  say "installing $1"
  apt install --no-install-recommends "$1" || return 1
  # The policy above keeps it from starting now; this also keeps it from starting at the next boot.
  if [ -d /run/systemd/system ]; then
    systemctl disable --now --quiet "$1.service" || true
  elif [ -x "/etc/init.d/$1" ]; then
    "/etc/init.d/$1" stop > /dev/null 2>&1 || true
  fi
  command -v "$1" > /dev/null
}

has_postgresql() {
  for folder in /usr/lib/postgresql/*/bin; do
    if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then return; fi
  done
  return 1
}

install_postgresql() {
  if has_postgresql; then
    say "postgresql is there: $folder"
    return
  fi
  update
  has_candidate postgresql || return 1
  # The package would make a cluster `main` on port 5432, which starts at every boot.
  mkdir -p "$(dirname "$no_cluster")"
  echo 'create_main_cluster = off' > "$no_cluster"
  say 'installing postgresql'
  apt install --no-install-recommends postgresql || return 1
  rm -f "$no_cluster"
  has_postgresql
}

for package in "$@"; do
  case "$package" in
    any) install_package valkey-server || install_package redis-server ;;
    valkey-server | redis-server) install_package "$package" ;;
    postgresql) install_postgresql ;;
    *) say "unknown package: $package"; exit 2 ;;
  esac || { say "could not install: $package"; exit 1; }
done
