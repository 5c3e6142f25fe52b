// Package topotest has machines, recorded facts and checks for the tests of topotree and its
// sub-packages. Importing it enables the checks of trees after each transform.
package topotest
