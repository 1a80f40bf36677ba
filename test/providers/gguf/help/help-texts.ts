/**
 * What `llama-server --help` prints. `B11669` was recorded (0.7.0 of Debian); the others are made from it, because no other build was at hand: `OLDER` has the flags
 * of spring 2026 as the pull requests in `llama-options.ts` state them, `NEWER` lacks what a later build might drop, and has a flag that nobody knows.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';

export const B11669 = readFileSync(path.join(import.meta.dirname, 'b11669.txt'), 'utf8');

/** Drops the entries that have one of these names. */
function without(text: string, ...flags: readonly string[]): string {
  const entries = text.split(/\n(?=-)/);
  return entries
    .filter((entry) => !flags.some((flag) => (entry.split(/ {2,}(?=[^ -])|\n/)[0] ?? '').split(/[, ]+/).includes(flag)))
    .join('\n');
}

export const OLDER = `${without(B11669, '--load-mode', '--draft-max', '--draft-min', '--spec-draft-n-max', '--spec-draft-n-min', '--ui', '--offline', '--n-gpu-layers')}
--mlock                                 force system to keep model in RAM rather than swapping or compressing
--mmap, --no-mmap                       whether to memory-map model (default: enabled)
-ngl,  --gpu-layers, --n-gpu-layers N   number of layers to store in VRAM
--draft-max, --draft, --draft-n N       number of tokens to draft for speculative decoding (default: 16)
--draft-min, --draft-n-min N            minimum number of draft tokens to use for speculative decoding
--webui, --no-webui                     whether to enable the Web UI (default: enabled)
`;

export const NEWER = `${without(B11669, '--slots', '--ui', '--metrics')}
--ui, --no-ui                           whether to enable the Web UI (default: enabled)
--think-twice N                         think again
`;
