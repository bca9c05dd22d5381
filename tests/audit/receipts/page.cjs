// Runs the script of a page as it stands there, and gives its verdict on each line of JSON that comes in.
"use strict";
const { readFileSync } = require("node:fs");
const { createInterface } = require("node:readline");
const vm = require("node:vm");

const [, script] = /<script>(.*)<\/script>/s.exec(readFileSync(process.argv[2], "utf8"));
vm.runInThisContext(script);

async function main() {
  for await (const line of createInterface({ input: process.stdin })) {
    const { call, data, keys, old } = JSON.parse(line);
    if (call) console.log(JSON.stringify(await vm.runInThisContext(call)));
    else {
      const { code, said } = await verdictOn(new Uint8Array(Buffer.from(data, "base64")), keys, old);
      console.log(JSON.stringify({ code, said }));
    }
  }
}
main();
