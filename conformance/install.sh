#!/usr/bin/env bash
# Brings the reference implementations that `make conformance` compares with: Java Paimon 1.3.1 and
# pypaimon 2.1.0. Everything lands in .conformance/ of the repository; a second run does nothing.
# Registries are the ones that pip and Maven of this machine are set up with.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
dest=${CONFORMANCE_HOME:-$here/../.conformance}
mkdir -p "$dest"
dest=$(cd "$dest" && pwd)

# A venv can be made only where ensurepip is there too (a package of its own on Debian).
missing() {
  command -v javac >/dev/null && command -v mvn >/dev/null &&
    python3 -c 'import venv, ensurepip' 2>/dev/null && return 1
  return 0
}
if missing; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq openjdk-17-jdk-headless maven python3-venv >/dev/null
  fi
  if missing; then
    echo "conformance needs a JDK (11 or newer), Maven and Python 3 with venv; install them and run again" >&2
    exit 1
  fi
fi

# A stamp of what was asked for makes the second run free and a changed pin take effect.
current() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

jars=$(sha256sum <"$here/java/pom.xml")
if ! current "$dest/jars.stamp" "$jars"; then
  rm -rf "$dest/lib"
  # Maven writes a target/ beside its pom, so it gets a copy outside the sources.
  mkdir -p "$dest/maven"
  cp "$here/java/pom.xml" "$dest/maven/pom.xml"
  mvn -q -B -f "$dest/maven/pom.xml" dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$dest/lib"
  echo "$jars" >"$dest/jars.stamp"
fi

sources=$(find "$here/java/src" -name '*.java' | sort)
classes=$(cat $sources "$here/java/pom.xml" | sha256sum)
if ! current "$dest/classes.stamp" "$classes"; then
  rm -rf "$dest/classes"
  mkdir -p "$dest/classes"
  javac -nowarn -XDsuppressNotes -encoding UTF-8 -d "$dest/classes" -cp "$dest/lib/*" $sources
  echo "$classes" >"$dest/classes.stamp"
fi

python=$(cat "$here/requirements.txt")
if ! current "$dest/python.stamp" "$python"; then
  rm -rf "$dest/venv"
  python3 -m venv "$dest/venv"
  "$dest/venv/bin/pip" install -q --disable-pip-version-check -r "$here/requirements.txt"
  echo "$python" >"$dest/python.stamp"
fi

echo "conformance: Java Paimon and pypaimon are ready in $dest"
