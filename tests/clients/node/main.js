'use strict'
// kafkajs behind the line protocol of ../drivers/channel.py. NODE_PATH is the path of its libraries.

const readline = require('readline')

const admin = require('./admin')
const consumers = require('./consumers')
const groups = require('./groups')
const producers = require('./producers')
const { codeOf } = require('./errors')

const verbs = { ...admin, ...consumers, ...groups, ...producers }

async function answer({ do: verb, ...request }) {
  try {
    if (verbs[verb] === undefined) throw new Error(`kafkajs has no ${verb}`)
    return await verbs[verb](request)
  } catch (error) {
    return { error: codeOf(error), message: `${error.name}: ${error.message}` }
  }
}

async function serve() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + '\n')
  }
  process.exit(0) // exit although members may still be polling
}

serve()
