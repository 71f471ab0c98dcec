-- __lance_moment: a point in time as text in UTC; other text as it is.
CREATE OR REPLACE TEMP MACRO __lance_moment(moment) AS
    coalesce(
        strftime(make_timestamp(epoch_us(TRY_CAST(moment AS TIMESTAMPTZ))), '%Y-%m-%d %H:%M:%S.%f+00:00'), moment::VARCHAR
    );
