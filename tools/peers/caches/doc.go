// Package caches sets another project's cache beside tiercache: what a value
// costs that this process holds.
package caches
