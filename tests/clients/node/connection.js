'use strict'
// The connection of kafkajs to its broker; tests/support/client_security.py describes the environment variable.

const fs = require('fs')
const { Kafka, logLevel } = require('kafkajs')

const given = JSON.parse(process.env.CLIENT_SECURITY || '{}')
// Retry for a second if the broker lags behind; requests without a response fail within five seconds.
const RETRY = { retries: 8, initialRetryTime: 50, maxRetryTime: 1000 }

async function token() {
  const answer = await fetch(given.token_url, {
    method: 'POST',
    headers: {
      Authorization: `Basic ${Buffer.from('client:secret').toString('base64')}`,
      'Content-Type': 'application/x-www-form-urlencoded',
    },
    body: 'grant_type=client_credentials&scope=kafka',
  })
  if (!answer.ok) throw new Error(`${given.token_url}: ${answer.status}`)
  return { value: (await answer.json()).access_token }
}

function security() {
  const found = {}
  if (given.ca !== undefined) {
    found.ssl = { ca: [fs.readFileSync(given.ca)] }
    if (given.certificate !== undefined) {
      found.ssl.cert = fs.readFileSync(given.certificate)
      found.ssl.key = fs.readFileSync(given.key)
    }
  }
  if (given.mechanism === 'OAUTHBEARER') {
    found.sasl = { mechanism: 'oauthbearer', oauthBearerProvider: token }
  } else if (given.mechanism !== undefined) {
    found.sasl = { mechanism: given.mechanism.toLowerCase(), username: given.user, password: given.password }
  }
  return found
}

/** A kafkajs client for a broker. `listener` receives each log message, which is also written to stderr. */
function connection(bootstrap, listener = () => {}) {
  const logCreator = () => ({ label, namespace, log: { message, ...details } }) => {
    process.stderr.write(`${label} ${namespace} ${message} ${JSON.stringify(details)}\n`)
    listener(message)
  }
  return new Kafka({
    brokers: [bootstrap],
    clientId: 'kafkajs-driver',
    connectionTimeout: 10000,
    retry: RETRY,
    logLevel: logLevel.INFO,
    logCreator,
    ...security(),
  })
}

const bytes = text => (text === null || text === undefined ? null : Buffer.from(text, 'latin1'))
const text = buffer => (buffer === null || buffer === undefined ? null : buffer.toString('latin1'))

module.exports = { connection, RETRY, bytes, text }
