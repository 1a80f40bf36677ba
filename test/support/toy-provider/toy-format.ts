/** How models of the toy provider look on disk: a directory with `toy.json`, which states how long `weights.bin` beside it is. */
import { z } from 'zod';
import { parseJson } from '../../../src/platform/decide/parse-json.ts';
import type { ModelFormat } from '../../../src/providers/provider.ts';

const MAX_DESCRIPTION_BYTES = 64 * 1024;

const Description = z.object({ phrase: z.string().max(1000), weightsBytes: z.int().min(0) });

export const ToyContents = z.object({
  phrase: z.string(),
  weightsBytes: z
    .number()
    .min(0)
    .max(2 ** 50),
});

export const toyFormat: ModelFormat = {
  kind: 'npu',
  recognize: ({ names }) => (names?.includes('toy.json') === true ? 'model' : undefined),
  contentsFrom: (stated) => stated,
  async read({ id }, files) {
    const text = new TextDecoder().decode(await files.read('toy.json', 0, MAX_DESCRIPTION_BYTES));
    const description = Description.safeParse(parseJson(text)).data;
    if (description === undefined) return unusable(`The file "toy.json" of "${id}" is damaged: it does not describe a model; get it again`);
    if (!(await files.names()).includes('weights.bin'))
      return unusable(`The model "${id}" is incomplete: it has no "weights.bin"; get it again`);
    const sizeBytes = await files.sizeOf('weights.bin');
    const { weightsBytes } = description;
    if (sizeBytes < weightsBytes) {
      return unusable(
        `The file "weights.bin" of "${id}" is incomplete: it has ${sizeBytes} of ${weightsBytes} bytes; wait until it is copied, or get it again`,
      );
    }
    return { kind: 'model', sizeBytes: sizeBytes + text.length, contents: description, family: 'toy' };
  },
};

function unusable(message: string) {
  return { kind: 'unusable', message } as const;
}
