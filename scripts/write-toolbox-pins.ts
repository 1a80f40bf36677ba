/** Writes the digests of published images into `manifests/toolboxes.toml`: `node scripts/write-toolbox-pins.ts PIN.json…`. Only the release workflow runs it. */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { PublishedPin, withPublishedPins } from '../src/cli/decide/toolbox-plan.ts';
import { PROVIDERS } from '../src/providers/registry.ts';

const manifest = path.join(import.meta.dirname, '../manifests/toolboxes.toml');
const files = process.argv.slice(2);
if (files.length === 0) throw new Error('Pass the files with the pins');
const pins = files.map((file) => PublishedPin.parse(JSON.parse(readFileSync(file, 'utf8'))));
writeFileSync(manifest, withPublishedPins(readFileSync(manifest, 'utf8'), pins, PROVIDERS));
