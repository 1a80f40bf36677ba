/**
 * Prints what must be set up for the suites whose paths are on standard input, one per line: `podman` if one of them imports `test/support/require/require-podman.ts`,
 * directly or through other files of `test`, and `speech` if it takes an image for speech from there.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';

const TEST = join(dirname(import.meta.dirname), `test${sep}`);
const REQUIRE = join(TEST, 'support/require/require-podman.ts');
const IMPORT = /^(?:import|export)\b([^;]*?)\bfrom '(\.[^']*)'|\bimport\('(\.[^']*)'\)/gm;

const requirements = new Set();
const seen = new Set();

function visit(file) {
  if (seen.has(file) || file === REQUIRE || !existsSync(file)) return;
  seen.add(file);
  for (const [, names = '', from, imported] of readFileSync(file, 'utf8').matchAll(IMPORT)) {
    const target = join(dirname(file), from ?? imported);
    if (target === REQUIRE) requirements.add('podman');
    if (target === REQUIRE && names.includes('SPEECH_')) requirements.add('speech');
    if (target.startsWith(TEST)) visit(target);
  }
}

for (const file of readFileSync(0, 'utf8').split('\n')) if (file !== '') visit(file);
console.log([...requirements].join(' '));
