/** What each tab of a slot's drawer is given. */
export interface TabProps {
  /** Of the slot. */
  readonly name: string;
}
