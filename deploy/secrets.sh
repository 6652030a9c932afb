#!/bin/sh
# Creates the secrets that compose.yaml needs in deploy/secrets/. Existing files do not change.
set -eu
cd "$(dirname "$0")"
mkdir -p secrets
# Other users of this machine cannot enter the folder. Containers mount single files, which their user must be
# able to read.
chmod 700 secrets

make() { # NAME TEXT
  [ -s "secrets/$1" ] && return
  printf '%s' "$2" >"secrets/$1"
  chmod 644 "secrets/$1"
}

random() {
  head -c 48 /dev/urandom | base64 | tr -d '+/=\n'
}

make secret_key "$(random)"
make postgres_password "$(random)"
make database_password "$(random)"
make s3_secret_key "$(random)"
make model_key none
# With these settings, the site notices within half a minute that the database machine has vanished.
make database_url "postgresql://chatsite:$(cat secrets/database_password)@postgres/chatsite?keepalives_idle=10&keepalives_interval=5&keepalives_count=4&tcp_user_timeout=30000"
