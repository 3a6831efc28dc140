'use strict'
// Kafka's error codes for exceptions of kafkajs.

const LOCAL_FAILURE = -1000
const SASL_AUTHENTICATION_FAILED = 58
const UNKNOWN_TO_KAFKAJS = /^Unknown error code (\d+)$/

function ownCode(error) {
  if (error.name === 'KafkaJSSASLAuthenticationError') return SASL_AUTHENTICATION_FAILED
  // kafkajs knows codes up to 88 only, and reports others in the message.
  const unknown = UNKNOWN_TO_KAFKAJS.exec(error.message)
  if (unknown !== null) return Number(unknown[1])
  if (Number.isInteger(error.errorCode)) return error.errorCode
  return Number.isInteger(error.code) ? error.code : null
}

/** Returns the cause of an error, or the first of several errors. */
function inner(error) {
  const many = error.errors || error.partitions || error.groups
  if (many && many.length > 0) return many[0].error || many[0]
  return error.cause
}

/** Returns Kafka's error code, or -1000 if there is none. */
function codeOf(error) {
  for (let each = error; each; each = inner(each)) {
    const code = ownCode(each)
    if (code !== null) return code
  }
  return LOCAL_FAILURE
}

module.exports = { codeOf, OFFSET_OUT_OF_RANGE: 1, TOPIC_ALREADY_EXISTS: 36 }
