# shellcheck shell=bash
# Read by other scripts: how they deal with servers that are not ours.
#
# A script ends with $NOT_CHECKED, after a line "NOT CHECKED: ...", when a
# server that it asks does not answer. Everything else that goes wrong is an
# ordinary failure.
NOT_CHECKED=69

APT_PATIENCE=(-o Acquire::Retries=3 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o DPkg::Lock::Timeout=60)

not_checked() {
  echo "NOT CHECKED: $1" >&2
  exit "$NOT_CHECKED"
}

# no_answer LOG: apt or Go says in it that a server was not reached. A server
# that answers "404 Not Found" was.
no_answer() {
  grep -Eqi 'could not resolve|temporary failure|no such host|could not connect|unable to connect|cannot initiate the connection|connection (timed out|failed|refused|reset)|network is unreachable|no route to host|i/o timeout|tls handshake timeout|(client\.timeout|context deadline) exceeded| 50[234] ' "$1"
}

# answers URL: any reply of a server is an answer, unless it is itself unable to ask another.
answers() {
  local said
  said=$(wget -S -T 20 -t 2 -O /dev/null "$1" 2>&1) && return 0
  grep -q 'HTTP/[0-9.]* [1-4]' <<<"$said"
}

# apt_unreachable RC LOG: apt ended with RC because its mirror was not reached.
# One that was stopped has not said why, so the mirror is asked.
apt_unreachable() {
  no_answer "$2" && return 0
  [ "$1" -eq 124 ] || return 1
  local uri
  uri=$(grep -hsv '^ *#' /etc/apt/sources.list /etc/apt/sources.list.d/* | grep -oE 'https?://[^] ]*(debian\.org|ubuntu\.com)[^] ]*' | head -1) || true
  ! answers "${uri%/}/"
}
