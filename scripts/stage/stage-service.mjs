/** Copies the service itself for its image and its release archive: sources, settings of images, documentation and the manual page. */
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './stage-packages.mjs';

const SERVICE = ['src', 'package.json', 'dashboard/dist', 'manifests/toolboxes.toml', 'toolboxes/demo', 'LICENSE'];
/** Where `man` finds it below a prefix such as `/usr`. */
export const MANUAL = 'share/man/man1/svcctl.1';

/** `more`: further paths of the checkout. */
export function stageService(to, more = []) {
  for (const path of [...SERVICE, ...more]) cpSync(join(ROOT, path), join(to, path), { recursive: true });
  stageDocs(to);
}

/** Copies `docs/` without the records of decisions, and `svcctl.1` to its place. */
export function stageDocs(to) {
  const docs = join(ROOT, 'docs');
  cpSync(docs, join(to, 'docs'), { recursive: true, filter: (source) => source !== join(docs, 'decisions') });
  mkdirSync(join(to, MANUAL, '..'), { recursive: true });
  cpSync(join(docs, 'reference/svcctl.1'), join(to, MANUAL));
}
