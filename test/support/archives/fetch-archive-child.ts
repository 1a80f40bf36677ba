/** A process that fetches a model in an archive, to be killed at any moment: `node fetch-archive-child.ts ROOT ENTRY`. Prints a line when it unpacks, and one when it is done. */
import { fetchModel } from '../../../src/models/download/fetch-model.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { toyFormat } from '../toy-provider/toy-format.ts';

const [root = '', entry = ''] = process.argv.slice(2);
const catalogue = new Map([['parrot', JSON.parse(entry)]]);
const onProgress = ({ what }: { readonly what: string }): void => void (what.includes('unpacking') && process.stdout.write('unpacking\n'));
const done = await fetchModel(
  { root, formats: [toyFormat], id: ModelId.parse('parrot'), catalogue, writer: 'child', onProgress },
  new AbortController().signal,
);
process.stdout.write(`${done.ok ? 'complete' : done.failure.message}\n`);
