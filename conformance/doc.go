// Package conformance compares the engine with the other implementations of the
// format: Java Paimon 1.3.1 (java/src) and pypaimon 2.1.0 (pypaimon_oracle.py).
//
// # Model
//
// An [Oracle] is one long-lived process of another implementation. It takes
// commands line by line and answers with rows and one closing line, so that the
// start of a JVM is paid once and not for every step. Rows travel as JSON lines in
// one notation (Oracle.java has the table); [Diff] compares two sets of them as
// multisets under a [Schema], because a MAP is a set of pairs and a FLOAT has
// 32 bits whatever its text looks like.
//
// A [Case] is a table and what happens to it, made from a seed: the schema, the
// commits with their row kinds, and for every commit the rows that must be
// visible after it. The expectation comes from a slow obvious model (a map by
// primary key, a list without one) and from no engine at all. The tests hand one
// case to every writer and let every reader read it.
//
// # How to run
//
//	make conformance
//
// which runs install.sh and then this package with TIDELINE_CONFORMANCE=1. Without
// that variable the tests that need another implementation are skipped; with it
// a missing tool is a failure. Files live in .conformance/ of the repository or
// in $CONFORMANCE_HOME.
//
// # Caveats
//
// Where the other implementations are wrong or limited, the tests say so in one
// list (exceptions_test.go), by table and by engine, with the reason.
package conformance
