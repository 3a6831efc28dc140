// Sends the HTTP request in each line of the input, as JSON [method, url, body], and prints [status, response].
const readline = require("node:readline");

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [method, url, body] = JSON.parse(line);
    const answer = await fetch(url, { method, body: body === null ? undefined : JSON.stringify(body) });
    const text = await answer.text();
    console.log(JSON.stringify([answer.status, text === "" ? null : JSON.parse(text)]));
  }
}

main();
