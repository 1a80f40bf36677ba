/** Form fields shared by several pages. */
import type { JSX } from 'preact';

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
