/** Form fields shared by several pages. */
import type { InputHTMLAttributes, JSX } from 'preact';

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
}

export function SearchField({ label, value, onValue }: FieldProps): JSX.Element {
  return (
    <input type="search" aria-label={label} placeholder={label} value={value} onInput={(event) => onValue(event.currentTarget.value)} />
  );
}

interface InputFieldProps extends FieldProps, Pick<InputHTMLAttributes, 'min' | 'max' | 'step' | 'placeholder' | 'required'> {
  readonly type?: 'number';
}

export const InputField = ({ label, value, onValue, ...attributes }: InputFieldProps): JSX.Element => (
  <label>
    {label}
    <input {...attributes} value={value} onInput={(event) => onValue(event.currentTarget.value)} />
  </label>
);

export const TextAreaField = ({ label, value, rows, onValue }: FieldProps & { readonly rows: number }): JSX.Element => (
  <label>
    {label}
    <textarea rows={rows} value={value} onInput={(event) => onValue(event.currentTarget.value)} />
  </label>
);

interface SelectFieldProps extends FieldProps {
  /** Values, or pairs of value and label. */
  readonly options: readonly (string | readonly [value: string, name: string])[];
  readonly isInline?: boolean;
}

export function SelectField({ label, value, options, onValue, isInline = false }: SelectFieldProps): JSX.Element {
  return (
    <label class={isInline ? 'inline' : ''}>
      {label}
      <select value={value} onChange={(event) => onValue(event.currentTarget.value)}>
        {options.map((option) => {
          const [id, name] = typeof option === 'string' ? [option, option] : option;
          return (
            <option key={id} value={id}>
              {name}
            </option>
          );
        })}
      </select>
    </label>
  );
}

interface NameFieldProps extends FieldProps {
  readonly id: string;
  readonly hint: string;
  readonly maxLength?: number;
  /** Values with their descriptions, offered while typing. Default: none. */
  readonly list?: readonly (readonly [value: string, description: string])[];
}

export function NameField({ id, label, hint, value, maxLength = 300, list = [], onValue }: NameFieldProps): JSX.Element {
  return (
    <label>
      {label}
      <input
        required
        list={`${id}-list`}
        value={value}
        maxLength={maxLength}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        aria-describedby={`${id}-hint`}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
      <datalist id={`${id}-list`}>
        {list.map(([offered, description]) => (
          <option key={offered} value={offered}>
            {description}
          </option>
        ))}
      </datalist>
      <small id={`${id}-hint`}>{hint}</small>
    </label>
  );
}
