/** `npm run bench [NAME ...]`: runs all measurements or the named ones. Prints a row for each goal; missed goals do not change the exit code. */
import { rowLine, type Row } from './measure.ts';

const MEASUREMENTS: Readonly<Record<string, () => Promise<readonly Row[]>>> = {
  gateway: async () => (await import('./gateway.ts')).measureGateway(),
  auth: async () => (await import('./auth.ts')).measureAuth(),
  plan: async () => (await import('./plan.ts')).measurePlan(),
  'at-rest': async () => (await import('./at-rest.ts')).measureAtRest(),
  cluster: async () => (await import('./cluster.ts')).measureCluster(),
  scale: async () => (await import('./scale.ts')).measureScale(),
  edit: async () => (await import('./edit.ts')).measureEdit(),
  images: async () => (await import('./images.ts')).measureImages(),
  models: async () => (await import('./models.ts')).measureModels(),
  speech: async () => (await import('./speech.ts')).measureSpeech(),
  memory: async () => (await import('./memory.ts')).measureMemory(),
};

const names = process.argv.slice(2);
const unknown = names.filter((name) => MEASUREMENTS[name] === undefined);
if (unknown.length > 0) {
  process.stderr.write(`Unknown measurement "${unknown.join('", "')}": use ${Object.keys(MEASUREMENTS).join(', ')}\n`);
  process.exit(64);
}
for (const [name, measure] of Object.entries(MEASUREMENTS)) {
  if (names.length > 0 && !names.includes(name)) continue;
  process.stdout.write(`\n${name}\n`);
  for (const row of await measure()) process.stdout.write(`  ${rowLine(row)}\n`);
}
