// Driver is a Go client behind the line protocol of drivers/channel.py: `driver franz-go` or
// `driver sarama`.
package main

import (
	"fmt"
	"os"
)

func main() {
	library := ""
	if len(os.Args) == 2 {
		library = os.Args[1]
	}
	switch library {
	case "franz-go":
		serve(newFranz().verbs(), franzCode)
	case "sarama":
		serve(newSarama().verbs(), saramaCode)
	default:
		fmt.Fprintln(os.Stderr, "usage: driver franz-go|sarama")
		os.Exit(2)
	}
}
