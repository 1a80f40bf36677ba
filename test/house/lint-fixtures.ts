/** Creates a small checkout in a temporary folder, with the lint configuration of this one, and runs oxlint on it. */
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

const Report = z.object({ diagnostics: z.array(z.object({ filename: z.string(), code: z.string().optional(), message: z.string() })) });
const Config = z.looseObject({ rules: z.record(z.string(), z.unknown()) });

export interface Finding {
  readonly file: string;
  /** `plugin(rule)` */
  readonly rule: string;
  readonly message: string;
}

/** Lints `files` (path in the checkout → text) and returns all findings. `rules` replace those of the checkout with the same name. */
export async function lint(
  files: Readonly<Record<string, string>>,
  rules: Readonly<Record<string, unknown>> = {},
): Promise<readonly Finding[]> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-house-'));
  try {
    for (const file of ['tsconfig.json', 'package.json']) await cp(join(ROOT, file), join(folder, file));
    const config = Config.parse(JSON.parse(await readFile(join(ROOT, '.oxlintrc.json'), 'utf8')));
    await writeFile(join(folder, '.oxlintrc.json'), JSON.stringify({ ...config, rules: { ...config.rules, ...rules } }));
    await cp(join(ROOT, 'scripts/lint'), join(folder, 'scripts/lint'), { recursive: true });
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    return await runOxlint(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function runOxlint(folder: string): Promise<readonly Finding[]> {
  const output = await new Promise<string>((resolve, reject) => {
    const args = [join(ROOT, 'node_modules/oxlint/bin/oxlint'), '--type-aware', '--format=json'];
    execFile(process.execPath, args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      // oxlint exits with 1 when it finds something.
      if (stdout.startsWith('{')) resolve(stdout);
      else reject(new Error(`oxlint failed: ${stdout}${stderr}`, { cause: error }));
    });
  });
  return Report.parse(JSON.parse(output)).diagnostics.map(({ filename, code, message }) => ({
    file: filename,
    rule: code ?? 'parser',
    message,
  }));
}
