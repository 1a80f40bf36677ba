/** Schema of the shipped `catalogue.toml` and the user's `models.toml`, both with keys in snake_case. Pure. */
import { z } from 'zod';
import { MODEL_KINDS, PROVIDER_OF_MODEL_KIND, PROVIDER_KIND_NAMES, type ProviderKind } from '../../../schema/slot/provider-kinds.ts';
import { sizeWithin } from '../../../schema/words/quantity-schemas.ts';

const ID_RULE = 'Write an id of letters, digits and "._-" that begins and ends with a letter or a digit';
const ID = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;
/** Ids with these endings look like files in the store. */
const FILE_ENDING = /\.(?:gguf|safetensors|bin|onnx|part|journal|toml)$/i;

/** Whether a name could be the id of an entry. Others are files, names on the Hub, or models of a provider. */
export const canBeId = (name: string): boolean => ID.test(name) && !FILE_ENDING.test(name);

/** Parts of a path begin with a letter, a digit or "_", so none is hidden, "." or "..". */
const PATH_RULE = 'Write a relative path of letters, digits and "._+-", without "..", whose parts do not begin with a dot';
const PATH = /^[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:\/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*$/;
const StorePath = z.string().max(300, 'Use at most 300 characters').regex(PATH, PATH_RULE);

/** The same rule as in `parse-model-name.ts`. */
const REPO_RULE = 'Write the repository as "owner/repo"';
const REPO = /^(?!.*(?:--|\.\.))[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?\/[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?$/;

const HttpsAddress = z
  .string()
  .max(2000, 'Use at most 2000 characters')
  .refine(isPlainHttps, 'Write an address that begins with "https://", without a user name or password');

function isPlainHttps(text: string): boolean {
  if (!/^https:\/\/[\x21-\x7e]+$/.test(text) || !URL.canParse(text)) return false;
  const { username, password, hash } = new URL(text);
  return username === '' && password === '' && hash === '';
}

const PlainLine = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^\p{C}]*$/u, 'Write one line without control characters');

/** No file is larger, and estimates stay exact. */
const MAX_FILE_BYTES = 2 ** 50;

const FileSize = z.int().min(1).max(MAX_FILE_BYTES);
const Sha256 = z.string().regex(/^[0-9a-fA-F]{64}$/, 'Write the 64 hexadecimal digits of the SHA-256');

const CatalogueFile = z
  .strictObject({
    repo: z.string().regex(REPO, REPO_RULE).optional().describe('Repository on the Hugging Face Hub'),
    commit: z
      .string()
      .regex(/^[0-9a-f]{40}$/, 'Write all 40 hexadecimal digits of the commit, in lower case')
      .optional()
      .describe('Commit of the repository. Default: the newest one, whose file must still have the hash'),
    file: StorePath.optional().describe('Path of the file in the repository'),
    url: HttpsAddress.refine(
      (url) => URL.canParse(url) && PATH.test(lastPart(new URL(url).pathname)),
      'Write an address whose path ends in a file name of letters, digits and "._+-"',
    )
      .optional()
      .describe('Address of a file that is not on the Hub'),
    archive: z.enum(['tar.bz2']).optional().describe('The file is an archive. The server loads the directory to which it is unpacked'),
    unpackedSize: z
      .int()
      .min(1)
      .max(MAX_FILE_BYTES)
      .optional()
      .describe('Size in bytes of all files in the archive. Default: at most eight times the size of the archive, and 256 MiB'),
    path: StorePath.optional().describe('Where the file is kept in the store; only for images, below "image/models/"'),
    size: FileSize.describe('Size in bytes'),
    sha256: Sha256.describe('SHA-256 of the file'),
    published: z.iso.date().optional().describe('Day on which the publisher put this file there, such as `2026-09-08`'),
    earlier: z
      .array(z.strictObject({ size: FileSize, sha256: Sha256, replaced: z.iso.date().optional() }))
      .max(20)
      .optional()
      .describe('Files that were there before, newest first, with the day on which each was replaced. They are accepted too'),
  })
  .superRefine((file, context) => {
    const isHub = file.repo !== undefined && file.file !== undefined;
    const hasHubKey = file.repo !== undefined || file.file !== undefined || file.commit !== undefined;
    const isOne = file.url === undefined ? isHub : !hasHubKey;
    if (!isOne) context.addIssue({ code: 'custom', message: 'Say where the file is: set either "{repo}" and "{file}", or "{url}"' });
    if (file.commit !== undefined && file.earlier !== undefined)
      context.addIssue({
        code: 'custom',
        path: ['earlier'],
        message: 'A commit has one version of the file; remove "{earlier}" or "{commit}"',
      });
  });

/** Servers of these providers load single files. */
const UNARCHIVED: ReadonlySet<ProviderKind> = new Set(['gguf', 'image']);

export const CatalogueRecord = z
  .strictObject({
    id: z
      .string()
      .max(80, 'Use at most 80 characters')
      .regex(ID, ID_RULE)
      .refine((id) => !FILE_ENDING.test(id), 'Write an id that does not end like the name of a file')
      .describe('Name of the model, for `model.default` of a slot'),
    kind: z.enum(MODEL_KINDS).describe('What the model is for'),
    provider: z.enum(PROVIDER_KIND_NAMES).optional().describe('Provider that serves the model. Default: that of its kind'),
    family: PlainLine.optional().describe('Family of the model'),
    context: z.int().min(1).max(16_777_216).optional().describe('Longest context in tokens'),
    pooling: z.enum(['mean', 'cls', 'last']).optional().describe('For `embed`: how the vectors of the tokens become one'),
    architecture: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, 'Write the architecture as the header of the file does')
      .optional()
      .describe('GGUF architecture'),
    minMemory: sizeWithin('1Mi', '1024Ti')
      .optional()
      .describe('Least memory that the model needs. Default: the size of its files, a tenth of it, and 256 MiB'),
    minVram: sizeWithin('1Mi', '1024Ti').optional().describe('Least memory of a discrete GPU'),
    license: PlainLine.optional().describe('Licence, as the Hub writes its name'),
    licenseUrl: HttpsAddress.optional().describe('Where to read the licence. Known for `apache-2.0` and `mit`'),
    gated: z.boolean().default(false).describe('The Hub sends the files only to accounts that have accepted its terms'),
    notSelectable: PlainLine.optional().describe('Why the model cannot be used, although its provider is there'),
    verified: z.boolean().default(false).describe('Whether the files were downloaded and compared with what is written here'),
    sources: z.array(HttpsAddress).max(20).default([]).describe('Pages where the entry can be checked, besides its repositories'),
    override: z.boolean().default(false).describe('Replaces the entry of the shipped catalogue with the same id'),
    files: z.array(CatalogueFile).min(1).max(100).describe('The files of the model. The server loads the first one'),
  })
  .superRefine((record, context) => {
    const at = (path: (string | number)[], message: string): void => context.addIssue({ code: 'custom', path, message });
    const names = record.files.map(nameOfFile);
    for (const [index, { path, archive, unpackedSize }] of record.files.entries()) {
      const file = ['files', index];
      if (archive !== undefined && (index > 0 || UNARCHIVED.has(providerOf(record))))
        at([...file, 'archive'], 'Only the first file of a model for speech may be an archive; remove "{archive}"');
      if (archive === undefined && unpackedSize !== undefined)
        at([...file, 'unpackedSize'], 'Only an archive has an unpacked size; remove "{unpackedSize}"');
      if (names.indexOf(names[index] ?? '') !== index) at(file, `The file "${names[index]}" occurs twice; name each file once`);
      if (path !== undefined && !(providerOf(record) === 'image' && path.startsWith('image/models/')))
        at([...file, 'path'], 'Only files of image models have a path, below "image/models/"; remove "{path}"');
    }
    if (record.pooling !== undefined && record.kind !== 'embed')
      at(['pooling'], 'Only a model of kind "embed" has a pooling; remove "{pooling}"');
    if (record.kind === 'vision' && !names.some((name) => /mmproj.*\.gguf$/i.test(name)))
      at(['files'], 'A model of kind "vision" needs a projector; add the file whose name contains "mmproj"');
    const [first = ''] = names;
    if (providerOf(record) === 'gguf' && first !== '' && !/\.gguf$/i.test(first))
      at(['files', 0], 'The server loads the first file, which must be a ".gguf" file');
  });

/** An entry as written, with keys in camelCase. */
export type CatalogueRecord = z.output<typeof CatalogueRecord>;
export type CatalogueRecordFile = CatalogueRecord['files'][number];

/** Only the outermost table, so that an invalid entry does not affect others. */
export const CatalogueDocument = z.strictObject({ published: z.iso.date().optional(), models: z.array(z.unknown()).max(500).default([]) });

export const providerOf = ({ provider, kind }: Pick<CatalogueRecord, 'provider' | 'kind'>) => provider ?? PROVIDER_OF_MODEL_KIND[kind];

export function nameOfFile({ file, url }: Pick<CatalogueRecordFile, 'file' | 'url'>): string {
  return lastPart(file ?? (url === undefined ? '' : new URL(url).pathname));
}

const lastPart = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
