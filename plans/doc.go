// Package plans owns the plan bundle: what it says, how it is read, written, checked, verified and compared.
package plans
