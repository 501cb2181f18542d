#!/usr/bin/env bash
# Cargo starts this in place of rustc, with rustc and its arguments. It adds a line to $TAILRACE_TIMINGS: the crate, and the
# seconds of user, system and wall time that compiling it took. Processor time stays comparable on a busy machine.
crate=-
previous=
for argument in "$@"; do
  if [[ "$previous" == --crate-name ]]; then crate="$argument"; fi
  previous="$argument"
done
TIMEFORMAT="$crate %U %S %R"
# `time` reports on the standard error of this group, and rustc writes to ours.
{ time "$@" 2>&3; } 3>&2 2>>"$TAILRACE_TIMINGS"
