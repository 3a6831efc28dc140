// Runs one broker of kfake, franz-go's in-memory Kafka, on 127.0.0.1 until SIGTERM. Prints its address.
//
//	kfake PORT
package main

import (
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	stopping := make(chan os.Signal, 1)
	signal.Notify(stopping, syscall.SIGTERM)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	<-stopping
	cluster.Close()
}
