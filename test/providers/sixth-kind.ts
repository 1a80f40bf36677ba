/** A copy of this version with a sixth kind of provider: the toy provider as a folder of its own, and the lines outside it that a new provider needs. */
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';

const TOP = path.resolve(import.meta.dirname, '../..');
const TOY = path.join(TOP, 'test/support/toy-provider');

/** Each edit adds one line, or a word to a line. */
const EDITS: readonly { readonly file: string; readonly find: RegExp; readonly replace: string }[] = [
  { file: 'src/providers/registry.ts', find: /^import \{ tts \}/m, replace: "import { toy } from './toy/toy.ts';\n$&" },
  { file: 'src/providers/registry.ts', find: /(PROVIDERS = \{[^}]*) \}/, replace: '$1, toy }' },
  {
    file: 'src/schema/slot/provider-kinds.ts',
    find: /PROVIDER_KINDS = \{\n/,
    replace: "$&  toy: { backends: ['npu'], defaultBackend: 'npu', serves: ['chat', 'embedding'] },\n",
  },
  { file: 'src/schema/slot/provider-kinds.ts', find: /(PROVIDER_KIND_NAMES = \[[^\]]*)\]/, replace: "$1, 'toy']" },
];

/** Writes the copy into an empty directory. Returns the number of edited lines outside the folder of the provider. */
export async function copyWithSixthKind(to: string): Promise<number> {
  for (const each of ['src', 'toolboxes/demo', 'package.json', 'tsconfig.json', 'manifests']) {
    await cp(path.join(TOP, each), path.join(to, each), { recursive: true });
  }
  await symlink(path.join(TOP, 'node_modules'), path.join(to, 'node_modules'));
  const folder = path.join(to, 'src/providers/toy');
  await mkdir(folder);
  for (const file of await readdir(TOY)) {
    const text = await readFile(path.join(TOY, file), 'utf8');
    const own = text
      .replaceAll('../../../src/providers/', '../')
      .replaceAll('../../../src/', '../../')
      .replaceAll(/(kind: |provider === |rankBackends\()'npu'/g, "$1'toy'");
    await writeFile(path.join(folder, file), own, { mode: 0o755 });
  }
  for (const { file, find, replace } of EDITS) {
    const text = await readFile(path.join(to, file), 'utf8');
    if (!find.test(text)) throw new Error(`The edit ${find} does not fit "${file}"`);
    await writeFile(path.join(to, file), text.replace(find, replace));
  }
  return EDITS.length;
}
