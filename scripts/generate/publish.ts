/** Everything that is generated from the schemas: `npm run generate` writes it, `npm run check` fails where it is stale. Pure. */
import { slotCrd } from './publish-crd.ts';
import { slotEditorSchema } from './publish-editor-schema.ts';
import { helmValuesSchema } from './publish-helm-schema.ts';
import { conditionReference, errorReference, settingsReference, slotReference } from './publish-reference.ts';

export interface PublishedFile {
  /** From the top of the repository. */
  readonly path: string;
  readonly content:
    | { readonly format: 'text'; readonly text: string }
    /** The caller writes it as YAML or JSON. */
    | { readonly format: 'yaml' | 'json'; readonly value: unknown };
}

const CRD_FILE = 'slotspecs.inference.svc.dev.yaml';

/** A new generated file is one line here. */
export function publishedFiles(): readonly PublishedFile[] {
  return [
    { path: `crds/${CRD_FILE}`, content: { format: 'yaml', value: slotCrd() } },
    // Helm installs what lies here before anything else.
    { path: `helm/svc/crds/${CRD_FILE}`, content: { format: 'yaml', value: slotCrd() } },
    { path: 'helm/svc/values.schema.json', content: { format: 'json', value: helmValuesSchema() } },
    { path: 'docs/reference/slot.schema.json', content: { format: 'json', value: slotEditorSchema() } },
    { path: 'docs/reference/slot.md', content: { format: 'text', text: slotReference() } },
    { path: 'docs/reference/settings.md', content: { format: 'text', text: settingsReference() } },
    { path: 'docs/reference/conditions.md', content: { format: 'text', text: conditionReference() } },
    { path: 'docs/reference/errors.md', content: { format: 'text', text: errorReference() } },
  ];
}
