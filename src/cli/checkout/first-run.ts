/** What `npm start` lays down in a checkout on its first run: slot files to edit, and demo models that need no download. */
import { access, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeDemoModels } from '../../models/demo/demo-models.ts';
import { fail, ok, type Result } from '../../schema/failure.ts';
import { messageOf } from '../../platform/error-text.ts';

const PRIMARY = `# The slot "primary" answers chat. Save this file and the change is served a moment later.
backend = "cpu"

[model]
# A model of the catalogue, or a GGUF file below the model store.
# Try the other demo model: default = "demo-owl"
default = "demo-fox"
`;

const EMBED = `# The slot "embed" answers embeddings.
backend = "cpu"

[model]
default = "demo-embed"
`;

/** Writes what is missing and leaves what is there. Fails with one line that says which directory cannot be used. */
export async function firstRun(options: { readonly configDir: string; readonly modelsDir: string }): Promise<Result<void>> {
  try {
    await layDown(options);
    return ok(undefined);
  } catch (error) {
    const why = messageOf(error);
    const message = `Make "${options.configDir}" and "${options.modelsDir}" writable, or name others in "SVC_CONFIG_DIR" and "SVC_STATE_DIR": ${why}`;
    return fail('stalled', 'SettingUnusable', message);
  }
}

async function layDown(options: { readonly configDir: string; readonly modelsDir: string }): Promise<void> {
  const slotsDir = join(options.configDir, 'slots');
  if (!(await exists(slotsDir))) {
    await mkdir(slotsDir, { recursive: true });
    for (const [name, text] of [
      ['primary.toml', PRIMARY],
      ['embed.toml', EMBED],
    ] as const) {
      await writeFile(join(slotsDir, name), text, { flag: 'wx' });
    }
  }
  await mkdir(options.modelsDir, { recursive: true });
  await writeDemoModels(options.modelsDir);
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
