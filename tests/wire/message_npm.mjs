// node message_npm.mjs NODE_MODULES CASES RESULTS
//
// The other side of test_message_npm.c: Foxglove's reader and writer of ROS 2 messages, installed in NODE_MODULES. CASES has one JSON object per
// line: {"type", "schema", "hex", "value"}. Each message is read from its bytes with the schema and compared with the value, member by member;
// and the value is written, one line of hexadecimal digits per case, into RESULTS. 64-bit integers are strings in JSON.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [directory, cases, results] = process.argv.slice(2);
const require = createRequire(join(resolve(directory), "..", "index.js"));
const { parse } = require("@foxglove/rosmsg");
const { MessageReader, MessageWriter } = require("@foxglove/rosmsg2-serialization");

// What the reader gives, in the form that the test writes: plain arrays, 64-bit integers as strings, times with "nanosec".
function plain(value) {
  if (typeof value === "bigint") return value.toString();
  if (ArrayBuffer.isView(value)) return Array.from(value, plain);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== "object") return value;
  const out = {};
  for (const [key, inner] of Object.entries(value)) out[key === "nsec" ? "nanosec" : key] = plain(inner);
  return out;
}

// And back: strings of 64-bit members to what the writer wants.
function rich(value, definition, definitions) {
  const out = {};
  for (const field of definition.definitions) {
    if (field.isConstant) continue;
    const one = (item) => {
      if (field.type === "int64" || field.type === "uint64") return BigInt(item);
      if (field.isComplex) return rich(item, definitions.find((d) => d.name === field.type), definitions);
      return item;
    };
    const item = value[field.name];
    out[field.name] = field.isArray ? item.map(one) : one(item);
  }
  return out;
}

function firstDifference(a, b, path) {
  if (typeof a === "object" && a !== null && typeof b === "object" && b !== null) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
    for (const key of keys) {
      const found = firstDifference(a[key], b[key], `${path}.${key}`);
      if (found) return found;
    }
    return Array.isArray(a) === Array.isArray(b) ? null : `${path}: an array on one side`;
  }
  return Object.is(a, b) ? null : `${path}: ${JSON.stringify(a)} read, ${JSON.stringify(b)} sent`;
}

let failed = 0;
const lines = [];
for (const line of readFileSync(cases, "utf8").split("\n").filter((text) => text)) {
  const { type, schema, hex, value } = JSON.parse(line);
  try {
    const definitions = parse(schema, { ros2: true });
    // The byte of a message without members carries nothing.
    const read = plain(new MessageReader(definitions).readMessage(Buffer.from(hex, "hex")));
    delete read.structure_needs_at_least_one_member;
    const difference = firstDifference(read, value, type);
    if (difference) throw new Error(difference);
    const root = definitions.find((definition) => !definition.name) ?? definitions[0];
    const written = new MessageWriter(definitions).writeMessage(rich(value, root, definitions));
    lines.push(Buffer.from(written).toString("hex"));
  } catch (error) {
    console.error(`${type}: ${error.message}`);
    lines.push("");
    failed++;
  }
}
writeFileSync(results, lines.join("\n") + "\n");
console.log(`${lines.length} messages, ${failed} failed`);
process.exit(failed ? 1 : 0);
