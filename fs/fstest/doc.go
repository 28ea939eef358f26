// Package fstest holds the conformance test that every fs.FileIO of this module
// passes: the promises of package fs, one subtest each, the race of many
// creators for one name among them. A new store calls [Run] from a test of its
// own; a wrapper that changes nothing must pass as well.
package fstest
