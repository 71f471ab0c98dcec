-- __lance_moment: a time as a string in UTC; other strings unchanged.
CREATE OR REPLACE TEMP MACRO __lance_moment(moment) AS
    coalesce(
        strftime(make_timestamp(epoch_us(TRY_CAST(moment AS TIMESTAMPTZ))), '%Y-%m-%d %H:%M:%S.%f+00:00'), moment::VARCHAR
    );
