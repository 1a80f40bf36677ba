#!/usr/bin/env node
// The stand-in for ComfyUI as a program: it takes the arguments of ComfyUI's `main.py` that slots are started with, and exits with 2 for any other.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startComfy } from './comfy-server.ts';

const text = { type: 'string' };
const flag = { type: 'boolean' };
const options = {
  listen: text,
  port: text,
  'extra-model-paths-config': text,
  'output-directory': text,
  'input-directory': text,
  'temp-directory': text,
  'user-directory': text,
  'disable-metadata': flag,
  'disable-all-custom-nodes': flag,
  'disable-api-nodes': flag,
  'preview-method': text,
  cpu: flag,
  lowvram: flag,
};

let values;
try {
  ({ values } = parseArgs({ options }));
} catch (error) {
  console.error(`main.py: error: ${error.message}`);
  process.exit(2);
}
const yaml = readFileSync(values['extra-model-paths-config'], 'utf8');
const base = /base_path: (.+)/.exec(yaml)?.[1].replace(/\$\{(\w+)\}/g, (_all, name) => process.env[name] ?? '') ?? '';
const checkpoints = /checkpoints: (.+)/.exec(yaml)?.[1] ?? '.';
if (!existsSync(base)) console.error(`Adding extra search path: ${base} does not exist`);
const comfy = await startComfy({
  host: values.listen,
  port: Number(values.port),
  modelsDirectory: path.join(base, checkpoints),
  outputDirectory: values['output-directory'],
  crash: () => process.abort(),
  withMetadata: values['disable-metadata'] !== true,
  behaviour: { previews: /^(auto|latent2rgb|taesd)$/.test(values['preview-method'] ?? '') },
});
console.log('To see the GUI go to: http://%s:%d', values.listen, comfy.port);
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => void comfy.close().then(() => process.exit(0)));
