package main

import "github.com/IBM/sarama"

// transactional returns the producer with the request's transactional id, which gets its epoch when it is created.
func (s *saramas) transactional(asked *request) (sarama.AsyncProducer, error) {
	if known, found := s.producers[asked.ID]; found {
		return known, nil
	}
	config, err := s.producerConfig()
	if err != nil {
		return nil, err
	}
	idempotent(config)
	config.Producer.Transaction.ID = asked.ID
	made, err := sarama.NewAsyncProducer([]string{asked.Bootstrap}, config)
	if err != nil {
		return nil, err
	}
	s.producers[asked.ID] = made
	return made, nil
}

func (s *saramas) transactionOpen(asked *request) (answer, error) {
	producer, err := s.transactional(asked)
	if err != nil {
		return nil, err
	}
	if err := producer.BeginTxn(); err != nil {
		return nil, err
	}
	messages := saramaMessages(asked)
	for _, err := range sendSarama(producer, messages) {
		if err != nil {
			// The error is returned; the transaction must end before the next one can begin.
			_ = producer.AbortTxn()
			return nil, err
		}
	}
	results := []any{}
	for _, sent := range messages {
		results = append(results, place(sent.Partition, sent.Offset))
	}
	return answer{"results": results}, nil
}

func (s *saramas) transactionEnd(asked *request) (answer, error) {
	producer, err := s.transactional(asked)
	if err != nil {
		return nil, err
	}
	if asked.End == "commit" {
		return answer{}, producer.CommitTxn()
	}
	return answer{}, producer.AbortTxn()
}

func (s *saramas) transaction(asked *request) (answer, error) {
	sent, err := s.transactionOpen(asked)
	if err != nil {
		return nil, err
	}
	_, err = s.transactionEnd(asked)
	return sent, err
}
