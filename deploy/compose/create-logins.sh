#!/usr/bin/env bash
# Creates the logins of the server and of the job queue; PostgreSQL's image runs it once, for an empty database.
# `kalends migrate` grants them their roles.
set -euo pipefail

psql --set=ON_ERROR_STOP=1 --username=postgres --dbname=postgres \
    --set=server_password="$SERVER_PASSWORD" --set=jobs_password="$JOBS_PASSWORD" <<'SQL'
CREATE ROLE kalends_server LOGIN PASSWORD :'server_password';
CREATE ROLE kalends_jobs LOGIN PASSWORD :'jobs_password';
SQL
