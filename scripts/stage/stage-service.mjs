/** Stages the service itself for its image and its release archive: its bundle, settings of images, documentation and the manual page. */
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { bundleService } from './bundle-service.mjs';
import { ROOT, stageLicences } from './stage-packages.mjs';

const SERVICE = ['package.json', 'dashboard/dist', 'manifests/toolboxes.toml', 'LICENSE'];
/** Where `man` finds it below a prefix such as `/usr`. */
export const MANUAL = 'share/man/man1/svcctl.1';

/** `more`: further paths of the checkout. */
export async function stageService(to, more = []) {
  await bundleService(to);
  for (const path of [...SERVICE, ...more]) cpSync(join(ROOT, path), join(to, path), { recursive: true });
  stageLicences(to);
  stageDocs(to);
}

/** Copies `docs/` without the records of decisions, and `svcctl.1` to its place. */
export function stageDocs(to) {
  const docs = join(ROOT, 'docs');
  cpSync(docs, join(to, 'docs'), { recursive: true, filter: (source) => source !== join(docs, 'decisions') });
  mkdirSync(join(to, MANUAL, '..'), { recursive: true });
  cpSync(join(docs, 'reference/svcctl.1'), join(to, MANUAL));
}
