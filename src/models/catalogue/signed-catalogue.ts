/** A catalogue that ends with its ed25519 signature: `# ed25519 BASE64`, over everything before that line. */
import { createPublicKey, verify } from 'node:crypto';
import { PUBLIC_KEY } from '../../schema/words/name-rules.ts';
import { DEMO_CATALOGUE } from './catalogue.ts';
import { unreadable, parseCatalogue, type CatalogueRecords, type ParsedCatalogue } from './decide/parse-catalogue.ts';

const SIGNATURE = /^# ed25519 ([A-Za-z0-9+/]{86}==)\n?$/;

/** `key`: base64 of the SubjectPublicKeyInfo. A text without a valid signature or a day has no entries. */
export function parseSigned(text: string, file: string, { key }: { readonly key: string | undefined }): ParsedCatalogue {
  const refuse = (message: string): ParsedCatalogue => unreadable({ path: [], message, file });
  const end = text.lastIndexOf('\n# ed25519 ') + 1;
  const signature = SIGNATURE.exec(text.slice(end))?.[1];
  if (key === undefined || !PUBLIC_KEY.test(key)) return refuse('No public key can verify it; set "SVC_CATALOGUE_KEY"');
  if (signature === undefined) return refuse('It is not signed; its last line must be "# ed25519" and the signature in base64');
  const publicKey = createPublicKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'spki' });
  if (!verify(null, Buffer.from(text.slice(0, end)), publicKey, Buffer.from(signature, 'base64')))
    return refuse('Its signature is not of the key in "SVC_CATALOGUE_KEY"; use a catalogue of that publisher');
  const parsed = parseCatalogue(text, file, DEMO_RECORDS);
  return parsed.refused !== undefined && parsed.published === undefined ? refuse('It has no key "published"; add its day') : parsed;
}

/** Reserves the ids of the demo models. */
export const DEMO_RECORDS: CatalogueRecords = new Map(
  [...DEMO_CATALOGUE.values()].map(({ id, kind = 'chat' }) => [
    id,
    { id, kind, gated: false, verified: true, sources: [], override: false, files: [] },
  ]),
);

/** Entries of the newer one take precedence; those that only the older one has stay. */
export function combine(one: ParsedCatalogue, other: ParsedCatalogue): CatalogueRecords {
  const isNewer = (other.published ?? '') > (one.published ?? '');
  return new Map(isNewer ? [...one.records, ...other.records] : [...other.records, ...one.records]);
}
