// SPDX-License-Identifier: Apache-2.0

// Command accounting compares what the tests exercised with the contract. It fails with one
// line for every operation, error code, op, event or job that no test has seen.
//
// Usage: accounting -books DIR
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/OWNER/bothy/services/server/test/accounting"
)

func main() {
	books := flag.String("books", "", "folder with the books of the test processes")
	flag.Parse()
	if err := run(*books, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "accounting:", err)
		os.Exit(1)
	}
}

func run(books string, out io.Writer) error {
	if books == "" {
		return errors.New("usage: accounting -books DIR")
	}
	missing, err := accounting.Missing(books)
	if err != nil {
		return err
	}
	for _, line := range missing {
		_, _ = fmt.Fprintln(out, "never seen:", line)
	}
	if len(missing) > 0 {
		return fmt.Errorf("%d entries of the contract were exercised by no test", len(missing))
	}
	_, _ = fmt.Fprintln(out, "every operation, error code, op, event and job was exercised")
	return nil
}
