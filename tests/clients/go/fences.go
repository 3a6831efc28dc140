package main

// producerFenced is Kafka's PRODUCER_FENCED.
const producerFenced = 90

// fences are the errors of producers that were fenced, by their transactional ids. Such a producer is of no use
// any more, but asked again, a library may only say that it is in no state for that.
type fences map[string]error

// kept is the verb, which answers as before once its producer was fenced.
func (known fences) kept(do verb, codeOf func(error) int) verb {
	return func(asked *request) (answer, error) {
		if err, fenced := known[asked.ID]; fenced {
			return nil, err
		}
		found, err := do(asked)
		if err != nil && codeOf(err) == producerFenced {
			known[asked.ID] = err
		}
		return found, err
	}
}
