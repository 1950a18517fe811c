// SPDX-License-Identifier: Apache-2.0

// Package domain holds the arithmetic of rights: what grants add up to on a target, how
// they pass from the instance to a space and from a space to a channel, what two states of
// a principal differ in, and who may give which grant. It is pure, so everything that
// decides, explains or delivers uses the same functions and cannot disagree.
package domain
