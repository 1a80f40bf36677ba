/** The common keys of a slot as a form. Form and text show each other's edits. */
import type { JSX } from 'preact';
import { FORM_FIELDS, readField, writeField, type FormField } from '../decide/slot-document.ts';
import type { Table } from '../decide/patch.ts';
import { T } from '../texts.ts';

interface SlotFormProps {
  /** Undefined while the TOML is invalid. */
  readonly document: Table | undefined;
  readonly onDocument: (document: Table) => void;
  /** The key that the service rejects; empty if none. */
  readonly wrongKey: string;
}

export function SlotForm({ document, onDocument, wrongKey }: SlotFormProps): JSX.Element {
  return (
    <fieldset class="slot-form" disabled={document === undefined}>
      <legend>{document === undefined ? T.formInvalid : T.form}</legend>
      {FORM_FIELDS.map((field) => (
        <Field
          key={field.key}
          field={field}
          value={readField(field, document ?? {})}
          isWrong={field.key === wrongKey}
          onValue={(entered) => onDocument(writeField(field, entered, document ?? {}))}
        />
      ))}
    </fieldset>
  );
}

interface FieldProps {
  readonly field: FormField;
  readonly value: string;
  readonly isWrong: boolean;
  readonly onValue: (entered: string) => void;
}

function Field({ field, value, isWrong, onValue }: FieldProps): JSX.Element {
  const { kind, label, hint } = field;
  if (kind === 'switch')
    return (
      <label class="check">
        <input type="checkbox" checked={value === 'true'} onChange={(event) => onValue(String(event.currentTarget.checked))} />
        <span>
          <strong>{label}</strong> <small>{hint}</small>
        </span>
      </label>
    );
  return (
    <label>
      {label}
      {kind === 'choice' ? (
        <select value={value} aria-invalid={isWrong} onChange={(event) => onValue(event.currentTarget.value)}>
          {['', ...field.options].map((option) => (
            <option key={option} value={option}>
              {option === '' ? T.formDefault : option}
            </option>
          ))}
        </select>
      ) : (
        <input
          value={value}
          aria-invalid={isWrong}
          inputMode={kind === 'number' ? 'numeric' : 'text'}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
      <small>{hint}</small>
    </label>
  );
}
