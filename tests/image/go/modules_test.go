// Package modules tests Testcontainers' Go module with this image.
package modules

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	tc "github.com/testcontainers/testcontainers-go/modules/kafka"
)

func TestProducedIsConsumed(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	container, err := tc.Run(ctx, os.Getenv("KAFKA_IMAGE"), tc.WithClusterID("test-cluster"))
	if err != nil {
		t.Fatal(err)
	}
	defer container.Terminate(context.Background())
	brokers, err := container.Brokers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	writer := kafka.Writer{Addr: kafka.TCP(brokers...), Topic: "flights", AllowAutoTopicCreation: true, BatchTimeout: time.Millisecond}
	for {
		// The first request creates the topic, and this client does not wait for the creation.
		err = writer.WriteMessages(ctx, kafka.Message{Value: []byte("EWR")})
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: brokers, GroupID: "readers", Topic: "flights", StartOffset: kafka.FirstOffset})
	defer reader.Close()
	message, err := reader.ReadMessage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if string(message.Value) != "EWR" {
		t.Fatalf("read %q", message.Value)
	}
}
