/**
 * The real llama-server, played as another build by a script in its place: its help is an earlier or a later one, and it refuses what that build lacks. Only one build
 * can be had from Debian's archive.
 */
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { NEWER, OLDER } from '../providers/gguf/help/help-texts.ts';

export const BUILDS = {
  older: {
    help: OLDER,
    lacks: ['--no-ui', '--offline', '--load-mode', 'all'],
    old: '--load-mode',
    fix: 'use "--no-mmap"',
    now: '--no-mmap',
  },
  newer: { help: NEWER, lacks: ['--no-slots', '--no-webui', '--metrics'], old: '--no-webui', fix: 'use "--no-ui"', now: '--no-ui' },
} as const;
export type Build = Readonly<{ help: string; lacks: readonly string[] }>;

/** `--no-mmap` and `--think-twice` are accepted, although the real server lacks them. `first`: commands before all others. */
const script = ({ lacks }: Build, { help, real, first = '' }: Places): string => `#!/bin/sh
[ "$1" = --help ] && exec cat '${help}'
${first}
for word in "$@"; do
  shift
  case "$word" in
    ${[...lacks, '--no-word-is-lacking'].join('|')}) echo "error: invalid argument: $word" >&2; exit 1;;
    --no-mmap) continue;;
    --think-twice) skip=1; continue;;
  esac
  if [ "$skip" = 1 ]; then skip=; else set -- "$@" "$word"; fi
done
exec '${real}' "$@"
`;

interface Places {
  readonly help: string;
  readonly real: string;
  readonly first?: string;
}

/** Writes `llama-server` and `help.txt` into a directory. */
export async function writeBuild(build: Build, dir: string, places: Places): Promise<string> {
  const file = path.join(dir, 'llama-server');
  await mkdir(dir, { recursive: true });
  await writeFile(path.join(dir, 'help.txt'), build.help);
  await writeFile(file, script(build, places));
  await chmod(file, 0o755);
  return file;
}
