/** What `npm start` lays down in a checkout on its first run: slot files to edit, and demo models that need no download. */
import { access, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeDemoModels } from '../models/demo-models.ts';

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

/** Writes what is missing and leaves what is there. Answers the paths of files it wrote. */
export async function firstRun(options: { readonly configDir: string; readonly modelsDir: string }): Promise<readonly string[]> {
  const slotsDir = join(options.configDir, 'slots');
  const wrote: string[] = [];
  if (!(await exists(slotsDir))) {
    await mkdir(slotsDir, { recursive: true });
    for (const [name, text] of [
      ['primary.toml', PRIMARY],
      ['embed.toml', EMBED],
    ] as const) {
      await writeFile(join(slotsDir, name), text, { flag: 'wx' });
      wrote.push(join(slotsDir, name));
    }
  }
  await mkdir(options.modelsDir, { recursive: true });
  await writeDemoModels(options.modelsDir);
  return wrote;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
