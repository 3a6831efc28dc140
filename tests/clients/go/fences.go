package main

// producerFenced is the code of PRODUCER_FENCED.
const producerFenced = 90

// fences maps transactional ids to the errors of fenced producers. A fenced producer is unusable, but on later
// calls, a library may report only an invalid state.
type fences map[string]error

// kept wraps a verb so that it returns the original error once the producer is fenced.
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
