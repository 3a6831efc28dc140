'use strict'
// Kafka's error codes of what kafkajs throws.

const LOCAL_FAILURE = -1000
const SASL_AUTHENTICATION_FAILED = 58
const UNKNOWN_TO_KAFKAJS = /^Unknown error code (\d+)$/

function ownCode(error) {
  if (error.name === 'KafkaJSSASLAuthenticationError') return SASL_AUTHENTICATION_FAILED
  // kafkajs knows no code above 88, and tells others in words.
  const unknown = UNKNOWN_TO_KAFKAJS.exec(error.message)
  if (unknown !== null) return Number(unknown[1])
  if (Number.isInteger(error.errorCode)) return error.errorCode
  return Number.isInteger(error.code) ? error.code : null
}

/** What a failure is made of: its cause, or those of the first of several names. */
function inner(error) {
  const many = error.errors || error.partitions || error.groups
  if (many && many.length > 0) return many[0].error || many[0]
  return error.cause
}

/** Kafka's code; -1000 where there is none. */
function codeOf(error) {
  for (let each = error; each; each = inner(each)) {
    const code = ownCode(each)
    if (code !== null) return code
  }
  return LOCAL_FAILURE
}

module.exports = { codeOf, OFFSET_OUT_OF_RANGE: 1, TOPIC_ALREADY_EXISTS: 36 }
