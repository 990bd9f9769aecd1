#!/bin/sh
# Starts varnishd in a container with the given options, where the other processes are on other hosts: SERVER_HOST is
# the name of the server, STREAM_HOST that of `kalends stream` (by default the same), and WORKER_NETWORK the network
# that may purge, such as 10.1.2.0/24.
set -eu

sed -e "/^backend streams/,/^}/s/127\.0\.0\.1/${STREAM_HOST:-$SERVER_HOST}/" \
    -e "s/\.host = \"127\.0\.0\.1\";/.host = \"$SERVER_HOST\";/" \
    -e "s|^acl workers {|&\n    \"${WORKER_NETWORK%/*}\"/${WORKER_NETWORK#*/};|" \
    "$(dirname "$0")/default.vcl" > "${TMPDIR:-/tmp}/kalends.vcl"
exec varnishd -f "${TMPDIR:-/tmp}/kalends.vcl" "$@"
