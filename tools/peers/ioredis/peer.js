// Writes replicas of a set with ioredis the way it is done by hand: pipelines straight to each master, all masters at
// once; with the argument "cluster", pipelines of the cluster's client, as it is mostly written. See
// bench/scenarios/PEERS.md for the protocol.
import calculateSlot from 'cluster-key-slot';
import { Cluster } from 'ioredis';
import { createInterface } from 'node:readline';

// Slots a pipeline: some 20,000 members, as in the Go variant that this is measured beside.
const chunk = (members) => Math.min(Math.max(8, Math.floor(20000 / Math.max(members, 1))), 1024);

const routed = process.argv[2] === 'cluster';
let cluster;
let masters; // { node, keys }, one each

function address(text) {
  const colon = text.lastIndexOf(':');
  return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) };
}

async function open({ nodes, username, password, keys }) {
  const auth = password ? { username: username || undefined, password } : {};
  cluster = new Cluster(nodes.map(address), { redisOptions: auth, slotsRefreshTimeout: 5000 });
  // Without a listener a lost connection would end the process by itself; commands fail then.
  cluster.on('error', () => {});
  await new Promise((resolve, reject) => {
    cluster.once('ready', resolve);
    cluster.once('end', () => reject(new Error('the cluster cannot be reached')));
  });
  const byKey = new Map(cluster.nodes('master').map((node) => [`${node.options.host}:${node.options.port}`, { node, keys: [] }]));
  for (const key of keys) {
    const owner = byKey.get(cluster.slots[calculateSlot(key)]?.[0]);
    if (!owner) throw new Error(`${key} has no owner`);
    owner.keys.push(key);
  }
  masters = [...byKey.values()].filter((m) => m.keys.length > 0);
}

// each runs the commands that write adds to a pipeline, for every key.
async function each(size, write) {
  await Promise.all(masters.map(async ({ node, keys }) => {
    for (let first = 0; first < keys.length; first += size) {
      const pipeline = (routed ? cluster : node).pipeline();
      for (const key of keys.slice(first, first + size)) write(pipeline, key);
      for (const [err] of await pipeline.exec()) if (err) throw err;
    }
  }));
}

const operations = {
  open,
  publish: ({ members }) => each(chunk(members.length), (pipeline, key) => {
    const stage = `${key}:next`;
    pipeline.del(stage);
    if (members.length > 0) {
      pipeline.sadd(stage, members);
      pipeline.rename(stage, key);
    } else {
      pipeline.del(key);
    }
  }),
  apply: ({ add = [], remove = [] }) => each(chunk(add.length + remove.length), (pipeline, key) => {
    if (add.length > 0) pipeline.sadd(key, add);
    if (remove.length > 0) pipeline.srem(key, remove);
  }),
};

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let reply = { ok: true };
  try {
    const request = JSON.parse(line);
    const operation = operations[request.op];
    if (!operation) throw new Error(`there is no operation ${request.op}`);
    await operation(request);
  } catch (err) {
    reply = { ok: false, error: String(err.message ?? err).replace(/\s+/g, ' ') };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
cluster?.disconnect();
